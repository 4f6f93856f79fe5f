"""One training job from its files: what it writes, and what does not change it."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from fedrepro import training
from fedrepro.errors import UserError
from fedrepro.experiment import seeds_of
from fedrepro.files import read_json
from fedrepro.preparation import partition_data, prepare_data
from fedrepro.training import Inputs, Machine, pick_device, strategy_chooser, train_shard
from tests.builders import make_task
from tests.configs import experiment

MINI_BATCH = {"local": {"epochs": 1, "batch": 4}, "participation.clients": 3, "seeds_per_job": 1}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Trains a shard of the small experiment with changes: run(changes, algorithm, shard) → (metrics, manifest)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(training, "keep_freed_memory", lambda: None)  # not for the whole test process

    def go(changes=None, algorithm="fedavg", shard="0-1", strategy="loop", name="run"):
        chosen, folder = experiment(changes), tmp_path / name
        prepare_data(chosen.dataset_id, chosen.spec["dataset"], seeds_of(shard), "auto", [], folder / "data.npz")
        inputs = Inputs(folder / "data.npz", folder / "federation.npz")
        partition_data(chosen.federation_id, chosen.spec["partition"], seeds_of(shard), *vars(inputs).values())
        machine = Machine(device="cpu", strategy=strategy)
        train_shard(chosen, algorithm, shard, inputs, machine, folder / "out", folder / "checkpoints")
        return pd.read_parquet(folder / "out.parquet"), read_json(folder / "out.json")

    return go


def test_the_same_job_gives_the_same_bytes(run, tmp_path):
    for name in ("one", "two"):
        run(MINI_BATCH, name=name)
    assert (tmp_path / "one" / "out.parquet").read_bytes() == (tmp_path / "two" / "out.parquet").read_bytes()


def test_a_run_does_not_depend_on_its_shard(run):
    together, _ = run(MINI_BATCH, shard="0-1", name="together")
    alone, manifest = run(MINI_BATCH, shard="1-1", name="alone")
    assert manifest["seeds"] == [1]
    mine = together[together["seed"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, mine, check_exact=True)


def test_gradient_steps_are_counted(run):
    _, manifest = run()
    assert manifest["gradient_steps"] == 3 * 2 * 4 * 5  # rounds, seeds, clients, steps
    assert manifest["diverged"] == []
    assert manifest["resumed_from"] is None


@pytest.mark.parametrize(
    ("changes", "round"), [({"dataset.slope": float("inf")}, 0), ({"algorithms.fedavg.lr": 1e80}, 1)]
)
def test_a_run_that_diverges_is_listed_with_its_round(run, changes, round):
    metrics, manifest = run(changes)
    assert manifest["diverged"] == [{"setting": "", "seed": seed, "round": round} for seed in (0, 1)]
    marks = metrics[metrics["metric"] == "diverged"]
    assert marks["round"].tolist() == [round] * 2
    assert metrics["round"].max() == round


def test_a_calibrated_strategy_is_remembered(run):
    first, second = (run(strategy="auto")[1]["strategy"] for _ in range(2))
    assert (first.pop("remembered"), second.pop("remembered")) == (False, True)
    assert first == second
    assert first["name"] in ("loop", "vmap")


def test_a_strategy_that_is_asked_for_is_taken(run):
    assert run(strategy="vmap")[1]["strategy"] == {"name": "vmap"}


def test_a_cache_that_cannot_be_written_is_said_and_no_more(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(training, "calibrate", lambda task, works: {"name": "loop"})

    said, chosen = [], {}
    strategy_chooser(make_task("linear"), "auto", "job", chosen, said.append)([])
    assert "cannot be remembered" in said[0]
    assert chosen == {"name": "loop", "remembered": False}


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(UserError, match="device: 'cuda' was asked for, but torch sees none"):
        pick_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto") == torch.device("cuda")
