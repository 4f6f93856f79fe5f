"""One training job: the files it writes, and changes that must not affect them."""

from __future__ import annotations

import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from fedrepro.core.clients import strategy
from fedrepro.core.streams import seeds_of
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.workflow import train_job as training
from fedrepro.workflow.train_job import Inputs, Machine, train_shard
from tests.configs import experiment

MINI_BATCH = {"local": {"epochs": 1, "batch": 4}, "participation.clients": 3, "seeds_per_job": 1}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Trains a shard of the small experiment with changes: run(changes, algorithm, shard) → (metrics, manifest)."""
    monkeypatch.setattr(training, "keep_freed_memory", lambda: None)  # it would affect the whole test process

    def go(changes=None, algorithm="fedavg", shard="0-1", strategy="loop", name="run"):
        chosen, folder = experiment(changes), tmp_path / name
        prepare_data(chosen.dataset_id, chosen.spec["dataset"], seeds_of(shard), "auto", [], folder / "data.npz")
        inputs = Inputs(folder / "data.npz", folder / "federation.npz")
        partition_data(chosen.federation_id, chosen.spec["partition"], seeds_of(shard), *vars(inputs).values())
        machine = Machine(device="cpu", strategy=strategy)
        train_shard(
            chosen, algorithm, shard, inputs, machine, {"code_sha256": "code"}, folder / "out", folder / "checkpoints"
        )
        return pd.read_parquet(folder / "out.parquet"), read_json(folder / "out.json")

    return go


def test_the_same_job_gives_the_same_bytes(run, tmp_path):
    for name in ("one", "two"):
        run(MINI_BATCH, name=name)
    assert (tmp_path / "one" / "out.parquet").read_bytes() == (tmp_path / "two" / "out.parquet").read_bytes()


def test_no_library_keeps_more_threads_than_the_job_has(run):
    """An idle thread of a BLAS spins: with two jobs on two cores each would take half of the other's."""
    training.use_threads(2)
    run()
    used = {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()}
    assert "openblas" in used
    assert set(used.values()) == {1}


def test_a_run_does_not_depend_on_its_shard(run):
    together, _ = run(MINI_BATCH, shard="0-1", name="together")
    alone, manifest = run(MINI_BATCH, shard="1-1", name="alone")
    assert manifest["seeds"] == [1]
    mine = together[together["seed"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, mine, check_exact=True)


def test_the_manifest_says_what_each_setting_consists_of(run):
    arm = {
        "lr": 0.1,
        "variants": {"plain": {"method": "fedavg"}, "tied": {"method": "fedprox", "grid": {"mu": [0, 1]}}},
    }
    metrics, manifest = run({"algorithms.all": arm}, algorithm="all")
    assert manifest["settings"] == {
        "plain": {"variant": "plain", "method": "fedavg", "grid": {}},
        "tied,mu=0": {"variant": "tied", "method": "fedprox", "grid": {"mu": 0}},
        "tied,mu=1": {"variant": "tied", "method": "fedprox", "grid": {"mu": 1}},
    }
    assert set(metrics["setting"]) == set(manifest["settings"])


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


@pytest.mark.parametrize(
    ("changes", "asked", "taken"),
    [
        ({}, "declared", "vmap"),  # by the model, linear
        ({"strategy": "loop"}, "declared", "loop"),
        ({"strategy": "loop"}, "vmap", "vmap"),
        ({}, "loop", "loop"),
    ],
)
def test_the_run_decides_before_the_experiment_before_the_model(run, monkeypatch, changes, asked, taken):
    used = []
    monkeypatch.setattr(training, "strategy", lambda name: used.append(name) or strategy(name))
    assert run(changes, strategy=asked)[1]["strategy"] == taken
    assert used == [taken]


def test_a_method_without_rounds_has_no_strategy(run):
    changes = {"model": {"name": "linear_outputs"}, "algorithms": {"closed_form": {}}}
    assert run(changes, "closed_form")[1]["strategy"] is None


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_images_kept_as_bytes_give_the_same_bytes(run, monkeypatch, strategy):
    images = {
        "dataset": {"name": "mnist5k", "train": 60, "test": 20},
        "partition": {"name": "iid", "clients": 3},
        "model": {"name": "mlp", "hidden": [4]},
        "dtype": "float32",
        "local": {"epochs": 1, "batch": 8},
        "participation.clients": 2,
    }
    plain, _ = run(images, shard="0-0", strategy=strategy, name="plain")
    monkeypatch.setattr(training, "LARGE", 0)
    kept, _ = run(images, shard="0-0", strategy=strategy, name="bytes")
    pd.testing.assert_frame_equal(plain, kept, check_exact=True)


def test_methods_that_share_a_job_run_as_they_do_alone(run):
    both = {"lr": 0.01, "variants": {"plain": {"method": "fedavg"}, "tied": {"method": "fedprox", "mu": 1.0}}}
    together, manifest = run({**MINI_BATCH, "algorithms": {"both": both}}, "both", name="together")
    assert manifest["method"] == "fedavg, fedprox"
    for setting, method, hyper in (("plain", "fedavg", {}), ("tied", "fedprox", {"mu": 1.0})):
        alone, _ = run({**MINI_BATCH, "algorithms": {method: {"lr": 0.01, **hyper}}}, method, name=method)
        mine = together[together["setting"] == setting].reset_index(drop=True)
        pd.testing.assert_frame_equal(
            mine.drop(columns=["setting", "algorithm"]), alone.drop(columns=["setting", "algorithm"])
        )


def test_methods_that_do_not_run_alike_share_no_job(run):
    both = {"variants": {"plain": {"method": "fedavg", "lr": 0.01}, "three": {"method": "omni_fedge"}}}
    with pytest.raises(UserError, match=r"algorithms\.both: its methods do not run alike"):
        run({**MINI_BATCH, "algorithms": {"both": both}}, "both")
