"""Config files: what is read, and the one line a wrong file is answered with."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from fedrepro.core.expansion import read_located
from fedrepro.core.schemas import validate
from fedrepro.errors import UserError
from fedrepro.files import ROOT, read_yaml
from tests.configs import ARTEFACTS, CONFIG, EXPERIMENT, changed

#: the end of a message that PyYAML's two readers word differently
HERE = "in this context" if yaml.__with_libyaml__ else "here"


def message(call, *arguments) -> str:
    """The text of the UserError that the call raises, which must be one line."""
    with pytest.raises(UserError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_reads_plain_values(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("γ: 0.5 # assumed\nsizes: [1, 2]\nname: 'ring'\nnothing: null\n", encoding="utf-8")
    assert read_yaml(file) == {"γ": 0.5, "sizes": [1, 2], "name": "ring", "nothing": None}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' appears twice"),
        ("outer:\n  a: 1\n  a: 1\n", "line 3: key 'a' appears twice"),
        ("a: &x [1]\nb: *x\n", "line 2: YAML aliases are not allowed"),
        ("a: 1\n2: b\n", "line 2: key 2 must be text"),
        ("a: 1\nyes: b\n", "line 2: key True must be text"),
        ("a: 1\nb: [1, 2\n", "line 3: "),
        ("a: b: c\n", f"line 1: mapping values are not allowed {HERE}"),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1: could not determine a constructor"),
        ("<<: {a: 1}\n", "line 1: could not determine a constructor"),
        ("[" * 5000, "not valid YAML"),
    ],
)
def test_refuses_by_file_and_line(tmp_path, text, says):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    told = message(read_yaml, file)
    assert told.startswith(f"{file}: ")
    assert says in told


def test_names_a_file_that_cannot_be_read(tmp_path):
    assert message(read_yaml, tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: no such file"
    assert f"{tmp_path}: cannot be read" in message(read_yaml, tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    assert "latin.yaml: cannot be read" in message(read_yaml, tmp_path / "latin.yaml")


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
    # These are closed by the classes that they name (fedrepro.workflow.checks); algorithms and artefacts have names of their own
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
        ({"scales.smoke": {"dataset": {"name": "other"}}}, "scales.smoke.dataset.name: 'other' is not of type"),
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


def test_located_values_are_those_of_the_file_with_their_text_and_line(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("γ: 1.0e-4 # small\nmore:\n  sizes: [1,  2]\n  flow: {a: 'x', b: }\n  long:\n    one\n    two\n")
    found = read_located(file)
    assert found.plain() == read_yaml(file)
    small, more = found.value["γ"], found.value["more"]
    assert (small.value, small.text, small.places) == (1.0e-4, "1.0e-4", ((file, 1, "γ"),))
    assert [(key, node.text, node.places[0].line) for key, node in more.value.items()] == [
        ("sizes", "[1,  2]", 3),
        ("flow", "{}", 4),
        ("long", "'one two'", 5),
    ]
    assert more.value["flow"].written() == "{a: 'x', b: }"
    assert more.written() == ""


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", "a: &x {b: 1}\nc: *x\n", "1: 2\n", "a: !!python/name:os.system\n", "a: [\n"]
)
def test_located_values_are_read_as_safely(tmp_path, text):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert message(read_located, file) == message(read_yaml, file)


def test_importing_config_imports_no_checker_and_hides_nothing_from_others():
    """jsonschema's optional formats (rfc3987_syntax builds grammars when imported) take more than a second."""
    code = "import sys, fedrepro.core.schemas, fedrepro.files; print(sorted(name for name in sys.modules if sys.modules[name] is None))"
    code += "; print({'jsonschema', 'rfc3987_syntax'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split("\n")[:2] == ["[]", "set()"]


def test_the_lock_has_no_slow_checker():
    lines = (ROOT / "envs" / "requirements.lock").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("rfc3987-syntax")]
    assert line.endswith("; sys_platform == 'never'")
    assert any(line.startswith("jupyter==") for line in lines)
