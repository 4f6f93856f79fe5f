"""Experiments checked against the code: schemas from signatures, refusals, and remembered checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from fedrepro.core import parts
from fedrepro.core.schemas import validate
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from fedrepro.workflow import checks
from fedrepro.workflow.checks import check_all, check_once, parameter_schema
from tests.configs import experiment

#: a method that only one study may use, and `toy` may not
FOREIGN = next(name for name, module in parts.modules("algorithms").items() if ".studies." in module)


def scheme(dataset, rng, alpha: float, *, clients: int = 3, names: list[str] | None = None, hard: bool = False):
    """A splitting scheme with a required parameter."""


@dataclass(frozen=True)
class Method:
    lr: float = 0.1
    edges: list[list[int]] | None = None
    widths: list[int] = field(default_factory=list)


class Net:
    def __init__(self, inputs: tuple[int, ...], outputs: int, hidden: Sequence[int] = (200,)):
        pass


def test_the_schema_is_the_signature():
    assert parameter_schema(scheme, skip=2) == {
        "type": "object",
        "additionalProperties": False,
        "required": ["alpha"],
        "properties": {
            "alpha": {"type": "number"},
            "clients": {"type": "integer"},
            "names": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "hard": {"type": "boolean"},
        },
    }
    assert parameter_schema(Method, skip=0)["required"] == []
    assert parameter_schema(Method, skip=0)["properties"]["edges"]["anyOf"][0] == {
        "type": "array",
        "items": {"type": "array", "items": {"type": "integer"}},
    }
    assert parameter_schema(Net, skip=2)["properties"] == {"hidden": {"type": "array", "items": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("make", "skip", "value", "says"),
    [
        (scheme, 2, {}, "'alpha' is missing"),
        (scheme, 2, {"alpha": 1, "client": 2}, "unknown key 'partition.client'; did you mean 'clients'?"),
        (scheme, 2, {"alpha": 1, "clients": -2}, "partition.clients: -2 is too small, must be ≥ 0"),
        (scheme, 2, {"alpha": 1, "clients": 2.0}, "partition.clients: 2.0 is not of type integer"),
        (scheme, 2, {"alpha": "1"}, "partition.alpha: '1' is not of type number"),
        (Net, 2, {"hidden": [200, -1]}, "partition.hidden.1: -1 is too small, must be ≥ 0"),
        (Net, 2, {"inputs": [2]}, "unknown key 'partition.inputs'"),
    ],
)
def test_the_schema_refuses(make, skip, value, says):
    with pytest.raises(UserError) as caught:
        validate(value, parameter_schema(make, skip, smallest=0), "a.yaml", "partition")
    assert says in str(caught.value)


def test_a_negative_number_that_is_no_size_is_fine():
    validate({"alpha": -1}, parameter_schema(scheme, 2, smallest=0), "a.yaml")


def test_a_block_by_name_has_values_of_one_type():
    def arms(changes: Mapping[str, Mapping[str, int]]):
        pass

    block = {"type": "object", "additionalProperties": {"type": "integer"}}
    found = parameter_schema(arms, skip=0)["properties"]["changes"]
    assert found == {"type": "object", "additionalProperties": block}


def test_a_parameter_that_no_config_can_hold_is_an_error_of_the_programmer():
    def odd(where: dict):
        pass

    with pytest.raises(TypeError, match="cannot be given in a config file"):
        parameter_schema(odd, skip=0)


def test_the_small_experiment_passes():
    check_all([experiment()])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dataset.name": "dfl_lin"}, "dataset.name: dataset 'dfl_lin' is unknown; did you mean 'dfl_line'?"),
        ({"dataset.sample": 3}, "unknown key 'dataset.sample'; did you mean 'samples'?"),
        ({"dataset.samples": -3}, "dataset.samples: -3 is too small"),
        ({"partition.name": "by_clint"}, "partition.name: partition 'by_clint' is unknown; did you mean 'by_client'?"),
        ({"model.name": "liner"}, "model.name: model 'liner' is unknown; did you mean 'linear'?"),
        ({"model.bias": "yes"}, "model.bias: 'yes' is not of type boolean"),
        ({"algorithms": {"fedavgg": {}}}, "algorithms.fedavgg: algorithm 'fedavgg' is unknown; did you mean 'fedavg'?"),
        (
            {"algorithms": {"a": {"method": "fedprx"}}},
            "algorithms.a.method: algorithm 'fedprx' is unknown;",
        ),
        ({"algorithms.fedavg.lrr": 1}, "unknown key 'algorithms.fedavg.lrr'; did you mean 'lr'?"),
        ({"algorithms.fedavg.lr": "fast"}, "algorithms.fedavg.lr: 'fast' is not of type number"),
        ({"algorithms.fedavg.lr": -1}, "algorithms.fedavg: FedAvg: lr = -1.0: the step must be positive"),
        (
            {"algorithms.fedavg.grid": {"decay": [1, 2]}},
            "algorithms.fedavg (decay=2): FedAvg: decay = 2.0: must lie in (0, 1]",
        ),
        ({"algorithms.fedavg.variants": {"a": {"mu": 1}}}, "unknown key 'algorithms.fedavg.mu'"),
        ({"algorithms": {FOREIGN: {}}}, f"algorithms.{FOREIGN}: algorithm '{FOREIGN}' is unknown"),
    ],
)
def test_names_the_file_the_key_and_the_nearest_name(changes, says):
    e = experiment(changes)
    with pytest.raises(UserError) as caught:
        check_all([e])
    assert str(caught.value).startswith(f"{e.path}: {says}")
    assert "\n" not in str(caught.value)


def test_a_check_that_passed_is_remembered_for_this_config(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(checks, "check_all", lambda experiments: asked.append([e.spec["rounds"] for e in experiments]))
    check_once([experiment()])
    check_once([experiment()])
    assert asked == [[3]]
    check_once([experiment({"scales.smoke.rounds": 5})])
    assert asked == [[3], [5]]


def test_a_check_is_repeated_when_the_code_changed(monkeypatch, tmp_path):
    source = tmp_path / "src" / "fedrepro" / "a.py"
    source.parent.mkdir(parents=True)
    source.write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks.parts, "PACKAGE", source.parent)
    asked = []
    monkeypatch.setattr(checks, "check_all", asked.append)
    check_once([experiment()])
    source.write_text("x = 2\n")
    check_once([experiment()])
    check_once([experiment()])
    assert len(asked) == 2


def test_a_check_that_failed_is_not_remembered(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with pytest.raises(UserError, match="algorithm 'nothing' is unknown"):
            check_once([experiment({"algorithms": {"nothing": {}}})])


def test_a_folder_that_cannot_be_written_only_costs_the_memory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").write_text("a file where the folder should be")
    asked = []
    monkeypatch.setattr(checks, "check_all", asked.append)
    check_once([experiment()])
    check_once([experiment()])
    assert len(asked) == 2


def test_a_catalogue_of_data_that_is_wrong_stops_a_run_before_its_jobs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "check_all", lambda experiments: None)
    monkeypatch.setattr(checks, "CATALOGUE", tmp_path / "datasets.yaml")
    (tmp_path / "datasets.yaml").write_text((ROOT / "config" / "datasets.yaml").read_text())
    check_once([experiment()])
    (tmp_path / "datasets.yaml").write_text("thing: {licence: MIT}\n")
    with pytest.raises(UserError, match=r"datasets\.yaml: thing: 'title' is missing"):
        check_once([experiment()])
