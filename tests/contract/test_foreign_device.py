"""Every method and every model takes a round, is evaluated and saved on a device that is not the host. A tensor that
was left on the cpu is an error there. Reads from the device are counted; docs/gpu.md lists them."""

from __future__ import annotations

import functools
import re

import pytest

from fedrepro.contracts.methods import CASES, PRIORS, settings_of
from fedrepro.core import parts
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.clients import strategy
from fedrepro.core.evaluation import record
from fedrepro.core.experiment import load_experiments
from fedrepro.core.federation import LocalWork
from fedrepro.core.metrics import MetricLog
from fedrepro.core.rounds import advance
from fedrepro.files import ROOT
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_replicates, make_task
from tests.contract.test_algorithms import ALGORITHMS, ITERATIVE
from tests.foreign_device import ForeignDevice, abroad

DOCS = ROOT / "docs" / "gpu.md"
MOST = 3  # reads per round of a network that learns from images or text
#: draws batches in each of the ways that an experiment can ask for
WAYS = {
    "passes": LocalWork(epochs=1, batch=3),
    "whole": LocalWork(epochs=1, batch=3, whole=True),
    "poisson": LocalWork(steps=2, batch=3, poisson=True),
    "subsets": LocalWork(steps=2, batch=2, subsets=True),
    "nearest": LocalWork(epochs=1, batch=3, nearest=True),
    "batches": LocalWork(steps=2, batches=2),
    "full": LocalWork(epochs=2),
}


def take_a_round(model, work, algorithm, way, path) -> tuple[int, int]:
    """Reads per round and in clients' updates, of the second round, evaluation included."""
    task, federation = abroad(make_task(model)), abroad(federations(model, {0: RAGGED})[0])
    plan = make_plan(3, work, "uniform")
    with ForeignDevice() as device:
        (replicate,) = make_replicates(task, federation, plan, algorithm)
        replicate.state = replicate.algorithm.init(replicate.problem, replicate.w)
        advance(task, [replicate], plan, strategy(way), 0)
        device.reads.clear()
        device.in_steps.clear()
        advance(task, [replicate], plan, strategy(way), 1)
        record(task, [replicate], plan, 2, MetricLog())
        found = device.reads.total(), device.in_steps.total()
        Checkpoint(path).save({"round": 2, "replicates": [(replicate.state, replicate.local)]})
    return found


@functools.cache
def reads(name, folder) -> tuple[int, int]:
    """The most reads of a method, over its cases and ways of running."""
    found = [
        take_a_round(*(CASES | PRIORS)[case], settings_of(name)[0], way, folder / f"{name}.pt")
        for case in ALGORITHMS[name].trial.cases or ("softmax, mini-batch", "mlp, five steps")
        for way in ("loop", "vmap")
    ]
    return max(each for each, _ in found), max(inside for _, inside in found)


@functools.cache
def of_networks() -> set[str]:
    """Methods of experiments with convolutions or an LSTM: those whose clients run in a loop on a CPU."""
    models = {name for name in parts.modules("models") if parts.model(name).strategies["cpu"] == "loop"}
    chosen = [e for e in load_experiments(ROOT / "config", "paper").values() if e.spec["model"]["name"] in models]
    return {method for e in chosen for algorithm in e.spec["algorithms"] for method in e.methods(algorithm)}


def listed() -> dict[str, tuple[int, int]]:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (int(each), int(inside)) for name, each, inside in rows}


@pytest.mark.parametrize("name", ITERATIVE)
def test_every_method_takes_a_round_and_reads_as_often_as_documented(name, tmp_path):
    found = reads(name, tmp_path)
    assert found == listed()[name]
    if name in of_networks():
        assert found[0] <= MOST
        assert found[1] == 0


@pytest.mark.parametrize("model", sorted(parts.modules("models")))
def test_every_model_takes_a_round(model, tmp_path):
    of_priors = [name for name in ITERATIVE if {*PRIORS} & {*ALGORITHMS[name].trial.cases}]
    method = of_priors[0] if model in {prior for prior, _ in PRIORS.values()} else "fedavg"
    for way in ("loop", "vmap") if parts.model(model).vectorised else ("loop",):
        take_a_round(model, MINI_BATCH, ALGORITHMS[method](lr=0.1), way, tmp_path / "job.pt")


@pytest.mark.parametrize("work", WAYS.values(), ids=WAYS)
def test_batches_are_gathered_on_the_device(work, tmp_path):
    assert take_a_round("mlp", work, ALGORITHMS["fedavg"](lr=0.1), "loop", tmp_path / "job.pt")[1] == 0
