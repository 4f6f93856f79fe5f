"""Studies outside the package: found by their folders, imported by their place."""

from __future__ import annotations

import importlib
import os

import pytest

from fedrepro.core import outside, parts
from fedrepro.core.study import load_studies, study_folders
from fedrepro.workflow.code_inputs import files_behind, path_of, syntax_sha256
from fedrepro.workflow.layout import Layout
from tests.configs import ARTEFACTS, EXPERIMENT, STUDY, message, write_config, write_yaml


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No study of another test is known, neither before nor after."""
    monkeypatch.setenv(outside.VARIABLE, "")
    cached = (parts.modules, parts.artefact_module, parts.label)
    yield
    monkeypatch.undo()
    for function in cached:
        function.cache_clear()


def write(folder, **files: str):
    """A study with Python files: `algorithms__one` is algorithms/one.py."""
    write_yaml(folder / "study.yaml", STUDY)
    for name, text in files.items():
        write_yaml(folder / (name.replace("__", "/") + ".py"), text)
    return folder


def test_its_parts_are_found_and_imported_by_their_place(tmp_path):
    write(
        tmp_path / "far_one",
        algorithms__far_method="from .. import far_helper\nX = far_helper.Y\n",
        far_helper="Y = 4\n",
        artefacts="def fig1(): ...\n",
        measures="",
    )
    parts.add_studies([tmp_path / "far_one"])
    assert parts.module_of("algorithms", "far_method") == "fedrepro.studies.far_one.algorithms.far_method"
    assert importlib.import_module("fedrepro.studies.far_one.algorithms.far_method").X == 4
    assert parts.artefact_module("far_one", "fig1") == "fedrepro.studies.far_one.artefacts"
    assert parts.study_module("far_one", "measures") == "fedrepro.studies.far_one.measures"
    assert "far_method" in parts.usable_by("far_one", "algorithms")
    assert "far_method" not in parts.usable_by("another", "algorithms")
    assert load_studies(tmp_path / "nothing")["far_one"].folder == tmp_path / "far_one"
    assert os.environ[outside.VARIABLE] == str(tmp_path / "far_one")  # other processes know it too


def test_the_files_of_a_job_include_its_own_and_what_they_import(tmp_path):
    study = write(
        tmp_path / "far_two",
        algorithms__far_two_method="from .._base import Z\nfrom fedrepro.core import streams\n",
        _base="Z = 1\n",
        unused="",
    )
    parts.add_studies([study])
    files = files_behind("fedrepro.studies.far_two.algorithms.far_two_method")
    mine = [file for file in files if file.startswith("studies/")]
    assert mine == ["studies/far_two/_base.py", "studies/far_two/algorithms/far_two_method.py"]
    assert "src/fedrepro/core/streams.py" in files
    assert path_of(mine[0]) == study / "_base.py"
    before = syntax_sha256(mine[0])
    (study / "_base.py").write_text("Z = 2\n")
    syntax_sha256.cache_clear()
    assert syntax_sha256(mine[0]) != before


def test_a_folder_of_studies_stands_for_all_in_it(tmp_path):
    for name in ("far_b", "far_a"):
        write(tmp_path / "many" / name)
    (tmp_path / "many" / "notes").mkdir()
    parts.add_studies([tmp_path / "many"])
    assert list(outside.known()) == ["far_a", "far_b"]


def test_the_config_adds_studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    study = write(tmp_path / "else where" / "far_three", artefacts="def fig1(): ...\ndef fig3b(): ...\n")
    write_yaml(study / "experiments" / "line.yaml", EXPERIMENT)
    write_yaml(study / "artefacts.yaml", ARTEFACTS)
    for given in (["else where/far_three"], "else where/far_three"):
        made = Layout({**config, "studies": given})
        assert made.studies == ["far_three", "toy"]
        assert made.experiments["far_three/line"].study == "far_three"
        assert made.artefact_code("far_three/fig1")[-1] == "studies/far_three/artefacts.py"
        assert made.notebook("far_three") is None
        assert made.notebooks == ["toy", "overview"]
    (study / "notebook.ipynb").write_text("{}")
    assert made.notebook("far_three") == str(study / "notebook.ipynb")


def test_what_cannot_be_a_study_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    assert message(parts.add_studies, [tmp_path / "none"]) == f"studies: folder '{tmp_path / 'none'}' does not exist"
    assert "has no study.yaml; `fedrepro new-study NAME`" in message(parts.add_studies, [tmp_path / "empty"])
    assert "lower-case letters, digits and _ only" in message(parts.add_studies, [write(tmp_path / "My-Study")])


def test_no_two_studies_have_one_name(tmp_path, monkeypatch):
    ours = next(iter(study_folders(parts.PACKAGE)))
    assert f"'{ours}' is a study of the package" in message(parts.add_studies, [write(tmp_path / ours)])
    monkeypatch.setenv(outside.VARIABLE, "")
    two = [write(tmp_path / place / "far_four") for place in ("a", "b")]
    assert "studies: two are named 'far_four'" in message(parts.add_studies, two)


def test_a_part_that_has_a_shared_name_is_refused(tmp_path):
    parts.add_studies([write(tmp_path / "far_five", algorithms__fedavg="")])
    assert "algorithms: two files are named 'fedavg'" in message(parts.modules, "algorithms")
