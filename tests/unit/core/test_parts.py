"""Parts and studies, found by their files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fedrepro.core import parts
from fedrepro.core.study import load_studies, study_of
from fedrepro.errors import UserError
from tests.configs import STUDY, changed, write_study, write_yaml


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes the files of a made-up package; parts are found there instead of in the real one."""
    cached = (parts.modules, parts.artefact_module, parts.label)
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(parts, "PACKAGE", tmp_path / "fedrepro")

    def write(**files: str) -> None:
        for name, text in files.items():
            write_yaml(tmp_path / "fedrepro" / (name.replace("__", "/") + ".py"), text)

    yield write
    for function in cached:
        function.cache_clear()


def test_a_part_has_the_name_of_its_file(package):
    package(algorithms__one="", algorithms___base="", studies__toy__algorithms__two="", data__datasets__line="")
    assert parts.modules("algorithms") == {
        "one": "fedrepro.algorithms.one",
        "two": "fedrepro.studies.toy.algorithms.two",
    }
    assert parts.modules("datasets") == {"line": "fedrepro.data.datasets.line"}
    assert parts.modules("models") == {}
    with pytest.raises(UserError, match="'onne' is unknown; did you mean 'one'"):
        parts.module_of("algorithms", "onne")


def test_two_parts_of_one_name_are_refused(package):
    package(models__one="", studies__toy__models__one="")
    with pytest.raises(UserError, match=r"two files are named 'one': fedrepro\.models\.one and fedrepro\.studies\.toy"):
        parts.modules("models")


def test_a_study_uses_shared_parts_and_its_own(package):
    package(algorithms__one="", studies__toy__algorithms__two="", studies__other__algorithms__three="")
    assert parts.usable_by("toy", "algorithms") == ["one", "two"]
    assert parts.usable_by("third", "algorithms") == ["one"]


def test_an_artefact_is_found_by_its_function(package):
    package(
        studies__toy__artefacts="def fig1(): ...", studies__toy__artefacts_more="def fig2(): ...\nfrom x import fig3"
    )
    assert parts.artefact_module("toy", "fig1") == "fedrepro.studies.toy.artefacts"
    assert parts.artefact_module("toy", "fig2") == "fedrepro.studies.toy.artefacts_more"
    with pytest.raises(UserError, match="artefact 'toy/fig3': no function of that name"):
        parts.artefact_module("toy", "fig3")


def test_measures_are_found_where_there_are_any(package):
    package(studies__toy__measures="", studies__toy__artefacts="", studies__other__artefacts="")
    assert parts.study_module("toy", "measures") == "fedrepro.studies.toy.measures"
    assert parts.study_module("other", "measures") is None
    assert parts.result_modules() == [
        f"fedrepro.studies.{m}" for m in ("toy.measures", "other.artefacts", "toy.artefacts")
    ]


def test_a_method_is_labelled_without_being_imported(package):
    package(
        algorithms__one="class One:\n    label: ClassVar[str] = 'The First'\n",
        algorithms__two="class Two:\n    x = 1\n",
    )
    assert parts.label("one") == "The First"
    assert parts.label("two") == "two"
    assert "fedrepro.algorithms.one" not in sys.modules


def test_a_module_provides_one_class_of_its_kind(monkeypatch):
    assert parts.algorithm("fedprox").__name__ == "FedProx"  # not the imported FedAvg
    with pytest.raises(TypeError, match="defines 0 classes derived from Algorithm"):
        parts._only_class("fedrepro.core.streams", "fedrepro.core.algorithm", "Algorithm")


def test_studies_are_found_by_their_folders(tmp_path):
    for name, order in (("late", 2), ("early", 1)):
        write_yaml(tmp_path / "studies" / name / "study.yaml", {**STUDY, "order": order})
    write_study(tmp_path, "last")
    (tmp_path / "studies" / "notes").mkdir()
    assert list(load_studies(tmp_path)) == ["early", "late", "last"]
    study = study_of(tmp_path, "early")
    assert study.paper == "Toys (Toys 2020)"
    assert study.file("claims.yaml") is None
    assert study.files("study.yaml") == [str(tmp_path / "studies" / "early" / "study.yaml")]
    with pytest.raises(UserError, match="study 'erly' is unknown; did you mean 'early'"):
        study_of(tmp_path, "erly")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"titel": "x"}, "unknown key 'titel'; did you mean 'title'?"),
        ({"link": "ftp://a"}, "link: "),
        ({"authors": []}, "authors: "),
        ({"venue": ...}, "the file: 'venue' is missing"),
    ],
)
def test_a_study_that_is_not_described_is_refused(tmp_path, changes, says):
    path = tmp_path / "studies" / "toy" / "study.yaml"
    write_yaml(path, changed(STUDY, changes))
    with pytest.raises(UserError) as caught:
        load_studies(tmp_path)
    assert str(caught.value).startswith(f"{path}: {says}")


def test_the_package_is_this_one():
    assert Path(parts.__file__).parents[1] == parts.PACKAGE
