"""Hostile or broken config files give at most one line of text: no traceback, no code run, no endless list, nothing
written elsewhere. Simple mistakes of users: test_wrong_input.py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fedrepro.workflow.layout import Layout
from tests.configs import ARTEFACTS, CONFIG, EXPERIMENT, STUDY, write_config, write_yaml
from tests.mutations import CLAIMS, MUTATED, NASTY, disturbed, settled

many = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


SUM = CLAIMS["claims"]["sum"]


def family(case: str, **changes: Any) -> dict[str, Any]:
    """Claims of one axis with one case."""
    axes = {"axes": {"data": {case: {"label": "x", **changes}}}}
    return {**axes, "claims": {"{data}_sum": {"for_each": {"data": "data"}, **SUM}}}


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("experiments/line.yaml", {**EXPERIMENT, "seeds": 10**12, "scales": {"demo": {}, "smoke": {}}}),
    ("experiments/line.yaml", {**EXPERIMENT, "algorithms": {"fedavg\n": {"lr": 0.1}}}),
    ("claims.yaml", {"claims": {"sum": {**SUM, "expression": "__import__('os').mkdir('broken')"}}}),
    ("claims.yaml", {"claims": {"sum": {**SUM, "expression": "9**9**9**9"}}}),
    ("claims.yaml", {"defaults": CLAIMS["defaults"], "claims": {"sum": {**SUM, "kind": []}}}),
    ("claims.yaml", {"defaults": CLAIMS["defaults"], "claims": {"sum": {**SUM, "kind": {"a": []}}}}),
    ("claims.yaml", {"shared": {"low": {}}, "claims": {"sum": {**SUM, "extends": []}}}),
    ("claims.yaml", family("`touch broken`")),
    ("claims.yaml", family("a\x07b")),
    ("claims.yaml", family("a", without=None)),
    ("claims.yaml", {"claims": {"sum": {**SUM, "expression": "(" * 90 + "a" + ")" * 90}}}),
]


@pytest.mark.parametrize("case", range(len(HOSTILE)))
def test_a_hostile_value(tmp_path, case):
    name, tree = HOSTILE[case]
    config = write_config(tmp_path)
    write_yaml(tmp_path / "config" / "studies" / "toy" / name, tree)
    settled(tmp_path, config)
    assert not (tmp_path / "broken").exists()


def mutate(what: str, data: st.DataObject) -> None:
    """One mutation of a file of a valid study."""
    name, tree = MUTATED[what]
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder))
        for file, content in (MUTATED["claims"], MUTATED["study"], (name, data.draw(disturbed(tree)))):
            write_yaml(Path(folder) / "config" / "studies" / "toy" / file, content)
        settled(Path(folder), config)


@pytest.mark.parametrize("what", MUTATED)
def test_what_is_mutated_is_valid(tmp_path, what):
    config = write_config(tmp_path)
    for file, content in (MUTATED["claims"], MUTATED["study"], MUTATED[what]):
        write_yaml(tmp_path / "config" / "studies" / "toy" / file, content)
    assert settled(tmp_path, config) is None


@pytest.mark.parametrize("what", MUTATED)
@many
@given(data=st.data())
def test_mutations(what, data):
    mutate(what, data)


@pytest.mark.slow
@pytest.mark.parametrize("what", MUTATED)
@settings(many, max_examples=2000 // len(MUTATED))
@given(data=st.data())
def test_two_thousand_mutations(what, data):
    mutate(what, data)


CASES = {
    **EXPERIMENT,
    "extends": "_base",
    "without": ["rounds", "scales.*.seeds"],
    "id": "of_{x}_{y}",
    "for_each": {"x": [1, 2], "y": {"a": {"size": 5}, "b": {"size": 6, "without": ["title"], "title": "{y}"}}},
    "only_for": {"of_1_a": {"seeds": 3}},
    "scales": {"demo": {"seeds": "{size}"}, "smoke": {"extends": "demo", "rounds": 2}},
}


@many
@given(disturbed(CASES))
@example(CASES)
@example({**CASES, "extends": "cases"})
@example({**CASES, "for_each": {f"x{i}": list(range(50)) for i in range(50)}})
def test_an_experiment_of_several_cases(tree):
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder))
        write_yaml(Path(folder) / "config" / "studies" / "toy" / "experiments" / "_base.yaml", EXPERIMENT)
        write_yaml(Path(folder) / "config" / "studies" / "toy" / "experiments" / "cases.yaml", tree)
        told = settled(Path(folder), config)
        assert tree != CASES or told is None


@many
@given(disturbed(ARTEFACTS))
@example({"fig1\n": ARTEFACTS["fig1"]})
def test_an_artefact(tree):
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder))
        write_yaml(Path(folder) / "config" / "studies" / "toy" / "artefacts.yaml", tree)
        settled(Path(folder), config)


@many
@given(disturbed(CONFIG))
def test_the_config_itself(tree):
    with tempfile.TemporaryDirectory() as folder:
        write_config(Path(folder))
        settled(Path(folder), tree)


@settings(max_examples=60, derandomize=True)
@given(st.text(max_size=80) | st.binary(max_size=80))
def test_any_text_at_all_as_a_file(text):
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder))
        path = Path(folder) / "config" / "studies" / "toy" / "experiments" / "line.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        assert settled(Path(folder), config) is not None


LAUGHS = "\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))])
YAML = {
    "a python object": "rounds: !!python/object/apply:os.mkdir [broken]",
    "a python name": "rounds: !!python/name:os.system",
    "a python module": "rounds: !!python/module:this",
    "a new object": "rounds: !!python/object/new:subprocess.Popen [[touch, broken]]",
    "a tag of one's own": "rounds: !touch broken",
    "a billion laughs": LAUGHS,
    "an alias": "a: &x {b: 1}\nc: *x",
    "a merge of an alias": "a: &x {b: 1}\nc: {<<: *x}",
    "an alias to itself": "a: &x [*x]",
    "two documents": "a: 1\n---\nb: 2",
    "a key that is a list": "? [a, b]\n: 1",
    "a key that is a number": "1: 1",
    "deep lists": "a: " + "[" * 5000 + "]" * 5000,
    "deep maps": "a: " + "{a: " * 5000 + "}" * 5000,
    "a huge number": "a: " + "9" * 10_000,
    "binary": "a: !!binary gibberish",
    "a broken date": "a: 2020-99-99",
    "zero bytes": "a: \0",
}


@pytest.mark.parametrize("what", YAML)
def test_yaml_that_would_run_code_or_explode(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    for name in (
        "studies/toy/experiments/line.yaml",
        "studies/toy/artefacts.yaml",
        "studies/toy/claims.yaml",
        "studies/toy/study.yaml",
    ):
        path = tmp_path / "config" / name
        whole = path.read_text() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text(YAML[what])
        told = settled(tmp_path, config)
        assert told is not None
        assert told.startswith(f"config/{name}: "), told
        assert len(told) < 400
        path.unlink() if whole is None else path.write_text(whole)
    assert not (tmp_path / "broken").exists()


FILE_NAMES = [name for name in NASTY if name not in ("", "..", "x" * 5000) and "/" not in name]


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_files_name_is_no_way_in(tmp_path, monkeypatch, name):
    """Files of experiments and folders of studies with invalid names."""
    monkeypatch.chdir(tmp_path)
    for kind, content in (("studies/toy/experiments/{}.yaml", EXPERIMENT), ("studies/{}/study.yaml", STUDY)):
        config = write_config(tmp_path)
        path = tmp_path / "config" / kind.format(name)
        write_yaml(path, content)
        told = settled(tmp_path, config)
        path.unlink()
        if name not in ("null", "nan"):  # a valid name
            assert told is not None, kind
            assert "name" in told or "unknown" in told
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("results", ["", "r{x}", "{study}", "a\nb", "a\0b", "\x1b[31m", "x" * 5000])
def test_a_results_folder_that_cannot_be_one_is_refused(tmp_path, monkeypatch, results):
    monkeypatch.chdir(tmp_path)
    told = settled(tmp_path, {**write_config(tmp_path), "results": results})
    assert told is not None
    assert "results" in told


@pytest.mark.parametrize(
    "results", ["my results", "a;touch broken", "$(touch broken)", "a'b\"c", "数据", "-rf", "../up"]
)
def test_any_other_results_folder_is_taken_as_it_is(tmp_path, monkeypatch, results):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    layout = Layout({**write_config(tmp_path / "here"), "results": results})
    assert layout.results == f"{results}/smoke"
    assert all(path.startswith(f"{results}/smoke/") for paths in layout.targets().values() for path in paths)
