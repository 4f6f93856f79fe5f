"""The contracts of every method. A new method is covered as soon as its file exists; its `trial` names hyper-parameters
for the small federations."""

from __future__ import annotations

import pytest
import torch

from fedrepro.contracts.methods import contracts
from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.workflow.train_job import Inputs, prepare

ALGORITHMS = {name: parts.algorithm(name) for name in parts.modules("algorithms")}
#: methods without rounds have no client updates; their own tests cover them
ITERATIVE = [name for name, make in ALGORITHMS.items() if make.iterative]
EVERY = [pytest.param(contract, id=f"{name}: {contract.says}") for name in ALGORITHMS for contract in contracts(name)]


@pytest.mark.parametrize("contract", EVERY)
def test_a_method_keeps_its_contracts(contract, tmp_path):
    contract.check(tmp_path)


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
