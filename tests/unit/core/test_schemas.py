"""Schemas of the config files: what is accepted, and the one line of an error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fedrepro.core.schemas import validate
from fedrepro.files import ROOT
from tests.configs import ARTEFACTS, CONFIG, EXPERIMENT, changed, message


def keys_of_mappings(tree: dict, at: str = ""):
    """The dotted key of every mapping in the tree, "" for itself."""
    yield at
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from keys_of_mappings(value, f"{at}{key}.")


@pytest.mark.parametrize(
    ("name", "tree"),
    [("experiment", EXPERIMENT), ("artefacts", ARTEFACTS), ("config", {**CONFIG, "config": "config"})],
)
def test_no_mapping_takes_a_key_that_is_not_declared(name, tree):
    # The classes they name close these (fedrepro.workflow.checks); algorithms and artefacts have names of their own.
    by_class = {"dataset.", "partition.", "model.", "algorithms.fedavg.", "algorithms.fedpd.", "algorithms."}
    closed = set(keys_of_mappings(tree)) - by_class - ({""} if name == "artefacts" else set())
    assert len(closed) >= 1
    for at in closed:
        told = message(validate, changed(tree, {f"{at}zzz": 1}), name, "a.yaml")
        assert told.startswith(f"a.yaml: unknown key '{at}zzz'")


def test_accepts_what_is_right():
    validate(EXPERIMENT, "experiment", "a.yaml")
    validate({**CONFIG, "config": "config"}, "config", "config.yaml")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"round": 3}, "unknown key 'round'; did you mean 'rounds'?"),
        ({"local.step": 3}, "unknown key 'local.step'; did you mean 'steps'?"),
        ({"rounds": ...}, "the file: 'rounds' is missing"),
        ({"evaluate.every": ...}, "evaluate: 'every' is missing"),
        ({"dtype": "float46"}, "dtype: 'float46' is unknown; did you mean 'float64'?"),
        ({"rounds": -3}, "rounds: -3 is too small, must be ≥ 1"),
        ({"rounds": 0}, "rounds: 0 is too small, must be ≥ 1"),
        ({"rounds": "many"}, "rounds: 'many' is not of type integer"),
        ({"rounds": 2.0}, "rounds: 2.0 is not of type integer"),
        ({"seeds": True}, "seeds: True is not of type integer"),
        ({"local.batch": -8}, "local.batch: -8 is too small, must be ≥ 1"),
        ({"local.batch": "whole"}, "local.batch: 'full' was expected"),
        ({"participation.clients": 0}, "participation.clients: 0 is too small, must be ≥ 1"),
        ({"local.steps": ...}, "local: needs exactly one of epochs, steps"),
        ({"algorithms": {}}, "algorithms: {} should be non-empty"),
        ({"algorithms": {"FedAvg": {}}}, "algorithms: 'FedAvg' does not match"),
        ({"scales.smoke": {"dtype": "float32"}}, "unknown key 'scales.smoke.dtype'"),
        ({"scales.smoke": {"dataset": {"name": "other"}}}, "scales.smoke.dataset.name: cannot be changed here"),
    ],
)
def test_says_what_is_wrong(changes, says):
    told = message(validate, changed(EXPERIMENT, changes), "experiment", "a.yaml")
    assert told.startswith(f"a.yaml: {says}")


def test_a_schema_can_be_given_with_the_place_it_applies_to():
    rules = {"type": "object", "additionalProperties": False, "properties": {"lr": {"exclusiveMinimum": 0}}}
    assert message(validate, {"lt": 1}, rules, "a.yaml", "x.y") == "a.yaml: unknown key 'x.y.lt'; did you mean 'lr'?"
    assert message(validate, {"lr": 0}, rules, "a.yaml", "x.y") == "a.yaml: x.y.lr: 0 is too small, must be > 0"


def test_a_value_with_line_breaks_still_gives_one_line():
    told = message(validate, changed(EXPERIMENT, {"title": ["a\nb"] * 100}), "experiment", "a.yaml")
    assert told.startswith("a.yaml: title: ")


def test_importing_schemas_imports_no_checker_and_hides_no_module():
    """jsonschema's optional formats take more than a second (rfc3987_syntax builds grammars on import)."""
    code = "import sys, fedrepro.core.schemas, fedrepro.files"
    code += "; print(sorted(name for name in sys.modules if sys.modules[name] is None))"
    code += "; print({'jsonschema', 'rfc3987_syntax'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split("\n")[:2] == ["[]", "set()"]


def test_the_lock_has_no_slow_checker():
    lines = (ROOT / "envs" / "requirements.lock").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("rfc3987-syntax")]
    assert line.removesuffix(" \\").endswith("; sys_platform == 'never'")
    assert any(line.startswith("jupyter==") for line in lines)
