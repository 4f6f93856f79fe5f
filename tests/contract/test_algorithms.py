"""The contract of every method. A new method is covered as soon as its file exists; its `trial` names hyper-parameters
for the small federations."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect

import numpy as np
import pandas as pd
import pytest
import torch

from fedrepro.core import parts
from fedrepro.core.algorithm import Algorithm
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.experiment import Experiment
from fedrepro.core.federation import LocalWork
from fedrepro.core.metrics import COLUMNS
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.workflow.train_job import Inputs, prepare
from tests.builders import (
    FULL_BATCH,
    MINI_BATCH,
    RAGGED,
    federations,
    make_plan,
    make_task,
    run,
    spying,
    tensors,
)
from tests.crashes import Crash, CrashingAt, Fragile

BY_SEED = {0: RAGGED, 1: RAGGED[::-1]}
CASES = {
    "linear, full batch": ("linear", FULL_BATCH),
    "linear, mini-batch": ("linear", MINI_BATCH),
    "softmax, full batch": ("softmax", FULL_BATCH),
    "softmax, mini-batch": ("softmax", MINI_BATCH),
    "mlp, five steps": ("mlp", LocalWork(steps=5, batch=3)),
}
#: other methods cannot train a prior's likelihood
PRIORS = {
    "gaussian process, mini-batch": ("gaussian_process", MINI_BATCH),
    "gaussian process, full batch": ("gaussian_process", FULL_BATCH),
}

ALGORITHMS = {name: parts.algorithm(name) for name in parts.modules("algorithms")}
#: methods without rounds have no client updates; their own tests cover them
ITERATIVE = [name for name, make in ALGORITHMS.items() if make.iterative]
any_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
every_algorithm = pytest.mark.parametrize("name", ITERATIVE)
every_case = pytest.mark.parametrize(
    ("name", "case"), [(a, c) for a in ITERATIVE for c in ALGORITHMS[a].trial.cases or CASES]
)


def case_of(name: str, case: str) -> str:
    """The case, or the first possible one if the method needs another model."""
    possible = ALGORITHMS[name].trial.cases or tuple(CASES)
    return case if case in possible else possible[0]


def settings_of(name: str) -> list[Algorithm]:
    return [ALGORITHMS[name].from_config(dict(hyper)) for hyper in ALGORITHMS[name].trial.settings]


def start(name: str, case: str = "softmax, mini-batch", seeds=tuple(BY_SEED), **options):
    model, work = (CASES | PRIORS)[case_of(name, case)]
    by_seed = {seed: f for seed, f in federations(model, BY_SEED).items() if seed in seeds}
    plan = make_plan(3, work, "uniform", client_metrics="always")
    return run(make_task(model), by_seed, plan, *settings_of(name), **options)


# Both strategies are deterministic (tested below), so several tests share one run of each.
cached = functools.cache(start)


# --- what it is -------------------------------------------------------------------------------------------------------


@any_algorithm
def test_it_is_a_frozen_dataclass_of_hyper_parameters_with_defaults(name):
    make = ALGORITHMS[name]
    assert dataclasses.is_dataclass(make)
    assert all(f.default is not dataclasses.MISSING for f in dataclasses.fields(make))
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().anything = 1
    assert make.server_only <= {f.name for f in dataclasses.fields(make)}


@any_algorithm
def test_it_stands_in_a_file_of_its_own_that_cites_its_source(name):
    module = importlib.import_module(parts.module_of("algorithms", name))
    assert ALGORITHMS[name].__module__ == module.__name__
    assert len(module.__doc__) > 40
    assert len(inspect.getsource(module).splitlines()) <= 200


@any_algorithm
def test_whole_numbers_of_a_config_file_become_real_ones(name):
    make = ALGORITHMS[name]
    floats = {f.name: f.default for f in dataclasses.fields(make) if f.init and f.type in (float, "float")}
    whole = {k: int(v) for k, v in floats.items() if v == int(v)}
    made = make.from_config(whole)
    assert all(isinstance(getattr(made, k), float) for k in whole)


# --- what it does -----------------------------------------------------------------------------------------------------


@every_case
def test_the_two_strategies_agree_to_1e9_on_ragged_clients_seeds_and_settings(name, case):
    loop, vmap = (cached(name, case, strategy=strategy) for strategy in ("loop", "vmap"))
    assert loop.counts == vmap.counts
    pd.testing.assert_frame_equal(loop.frame, vmap.frame, rtol=1e-9, atol=1e-12)
    for a, b in zip(loop.replicates, vmap.replicates, strict=True):
        assert list(a.local) == list(b.local)
        mine, theirs = tensors([a.state, list(a.local.values())]), tensors([b.state, list(b.local.values())])
        assert mine
        for x, y in zip(mine, theirs, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)


@every_algorithm
@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_no_gradient_is_wasted(gradients, name, strategy):
    each = ALGORITHMS[name].trial.gradients
    if each is not None:
        found = start(name, case_of(name, "mlp, five steps"), strategy=strategy)
        clients = sum(len(sizes) for sizes in BY_SEED.values())
        assert gradients.evaluations == 3 * clients * len(settings_of(name)) * each
        return
    found = start(name, "softmax, mini-batch", strategy=strategy)
    # per setting: three rounds of two epochs in batches of three
    batches = sum(-(-size // 3) for sizes in BY_SEED.values() for size in sizes)
    assert gradients.evaluations == 3 * 2 * batches * len(settings_of(name))
    assert found.counts["gradient_steps"] == gradients.evaluations


@every_algorithm
def test_it_learns(name):
    """The training loss of every replicate is lower at the end than at the start."""
    frame = cached(name, "linear, full batch", strategy="loop").frame
    frame = frame[(frame["metric"] == "loss") & (frame["split"] == "train") & (frame["client"] == -1)]
    for _, losses in frame.groupby(["setting", "seed"])["value"]:
        assert losses.iloc[-1] < losses.iloc[0]


@every_algorithm
def test_its_log_is_tidy(name):
    found = cached(name, "linear, full batch", strategy="loop")
    assert {k: str(v) for k, v in found.frame.dtypes.items() if k in ("seed", "round", "value")} == {
        "seed": "int64",
        "round": "int64",
        "value": "float64",
    }
    assert list(found.frame) == list(COLUMNS)
    assert not found.frame.duplicated([c for c in COLUMNS if c != "value"]).any()
    assert np.isfinite(found.frame["value"]).all()
    score = found.replicates[0].problem.task.score_name
    assert {"loss", score} <= set(found.frame["metric"])
    assert set(found.frame["round"]) == {0, 1, 2, 3}


@every_algorithm
@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(name, strategy):
    first, again = (start(name, seeds=(0,), strategy=strategy) for _ in range(2))
    assert first.parquet() == again.parquet()
    by_seed = cached(name, strategy="loop").frame
    by_seed = by_seed[(by_seed["round"] == 3) & (by_seed["client"] == -1)]
    losses = by_seed[by_seed["metric"] == "loss"].groupby("seed")["value"].first()
    assert losses.nunique() == len(BY_SEED)


@every_algorithm
def test_all_algorithms_of_a_seed_get_the_same_batches_cohorts_and_initial_model(name):
    noted = {}
    model, work = (CASES | PRIORS)[case_of(name, "softmax, mini-batch")]
    for method in ("fedavg", name):
        seen = []
        spies = [spying(a, seen) for a in settings_of(method)[:1]]
        (r,) = run(make_task(model), federations(model, {5: RAGGED}), make_plan(3, work), *spies).replicates
        updates = [s for s in seen if s["what"] == "client" and s["batches"].exchange == 0]
        start = r.algorithm.init(r.problem, r.w)
        used = r.algorithm.model(start, r.algorithm.init_client(r.problem, 0, r.w), 0)
        noted[method] = {
            "batches": [(s["round"], [t.tolist() for t in tensors(s["batches"].index)]) for s in updates],
            "cohorts": {s["cohort"].round: s["cohort"].clients.tolist() for s in seen if s["what"] == "server"},
            "initial": {k: v.tolist() for k, v in used.items()},
        }
    assert noted[name] == noted["fedavg"]


@every_algorithm
def test_a_client_update_is_pure(name):
    """Its arguments stay unchanged, and a second call gives the same result."""
    model, work = (CASES | PRIORS)[case_of(name, "softmax, mini-batch")]
    task, seen = make_task(model), []
    plan = make_plan(2, work, "uniform")
    (replicate,) = run(task, federations(model, {0: RAGGED}), plan, spying(settings_of(name)[0], seen)).replicates
    algorithm = replicate.algorithm
    state = algorithm.init(replicate.problem, replicate.w)
    batches = next(s["batches"] for s in seen if s["what"] == "client")
    (message,) = algorithm.messages(state, np.array([0]))
    local = algorithm.init_client(replicate.problem, 0, replicate.w)
    given = tensors([message, local, [batches.index, batches.weight]])
    kept, randomness = [t.clone() for t in given], torch.random.get_rng_state()
    first = tensors(algorithm.client_update(task, message, local, batches))
    again = tensors(algorithm.client_update(task, message, local, batches))
    assert all(map(torch.equal, given, kept))
    assert all(map(torch.equal, first, again))
    assert torch.equal(randomness, torch.random.get_rng_state())
    assert not any(t.requires_grad for t in first)


@every_algorithm
def test_its_state_survives_a_checkpoint(name, tmp_path):
    found = cached(name, "softmax, mini-batch", strategy="loop")
    states = [[r.state, r.local] for r in found.replicates]
    Checkpoint(tmp_path / "job.pt").save({"round": 3, "replicates": states})
    loaded = Checkpoint(tmp_path / "job.pt").load()["replicates"]
    mine, theirs = tensors(states), tensors(loaded)
    assert len(mine) == len(theirs) > 0
    assert all(map(torch.equal, mine, theirs))


@every_algorithm
@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_run_that_is_cut_off_ends_with_the_same_bytes(name, tmp_path, strategy):
    for case in ("softmax, mini-batch", "linear, full batch"):
        path = tmp_path / f"{case}.pt"
        with pytest.raises(Crash):
            start(name, case, strategy=strategy, checkpoint=Checkpoint(path, seconds=0), progress=Fragile(2))
        resumed = start(name, case, strategy=strategy, checkpoint=Checkpoint(path, seconds=0))
        assert resumed.counts["resumed_from"] == 2
        assert resumed.parquet() == cached(name, case, strategy=strategy).parquet()


#: questions whether a checkpoint is due: four runs are initialised, then each has six clients per exchange
MOMENTS = {"while runs are initialised": 2, "in the first run": 8, "in the third run": 20, "in the next round": 50}


@every_algorithm
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_cut_off_inside_a_round_ends_with_the_same_bytes(name, tmp_path, moment):
    path = tmp_path / "job.pt"
    with pytest.raises(Crash):
        start(name, strategy="loop", checkpoint=CrashingAt(path, MOMENTS[moment]))
    resumed = start(name, strategy="loop", checkpoint=Checkpoint(path))
    whole = cached(name, strategy="loop")
    assert resumed.counts["resumed_from"] >= 0
    assert resumed.counts["gradient_steps"] == whole.counts["gradient_steps"]
    assert resumed.parquet() == whole.parquet()
    for a, b in zip(resumed.replicates, whole.replicates, strict=True):
        assert all(map(torch.equal, tensors([a.state, a.local]), tensors([b.state, b.local])))


@every_algorithm
def test_a_client_alone_on_the_smallest_data_runs(name):
    hyper = {"servers": 1} if "servers" in {f.name for f in dataclasses.fields(ALGORITHMS[name])} else {}
    (algorithm, *_) = settings_of(name)
    algorithm = dataclasses.replace(algorithm, **hyper)
    model, work = (CASES | PRIORS)[case_of(name, "softmax, mini-batch")]
    found = run(make_task(model), federations(model, {0: [1]}), make_plan(2, work), algorithm)
    assert np.isfinite(found.values("loss")).all()


def test_a_job_gives_all_algorithms_of_a_seed_the_same_problem_and_initial_model(tmp_path):
    spec = {
        "dataset": {"name": "dfl_line", "servers": 2, "clients": 3, "samples": 4},
        "partition": {"name": "by_client"},
        "model": {"name": "mlp", "hidden": [3]},
        "dtype": "float64",
        "local": {"epochs": 2, "batch": 3},
        "participation": {"clients": "all", "sampling": "uniform", "weights": "size"},
        "rounds": 2,
        "evaluate": {"every": 1, "clients": "last"},
        "algorithms": {name: {**ALGORITHMS[name].trial.settings[0]} for name in ITERATIVE},
    }
    prepare_data("line", spec["dataset"], [0, 1], "standin", [], tmp_path / "data.npz")
    partition_data("line", spec["partition"], [0, 1], tmp_path / "data.npz", tmp_path / "federation.npz")
    inputs = Inputs(tmp_path / "data.npz", tmp_path / "federation.npz")
    experiment = Experiment("toy", "tiny", "smoke", tmp_path / "tiny.yaml", spec)
    started = {}
    for name in ITERATIVE:
        _, plan, replicates = prepare(experiment, name, "0-1", inputs, torch.device("cpu"))
        assert [r.seed for r in replicates] == [0, 1]
        assert plan.experiment == "toy/tiny"
        started[name] = [r.w.flatten().tolist() for r in replicates]
        held = [r.problem.federation.train.full_batch(0).x.tolist() for r in replicates]
        assert held[0] != held[1]
    assert started["fedavg"][0] != started["fedavg"][1]
    assert all(found == started["fedavg"] for found in started.values())
