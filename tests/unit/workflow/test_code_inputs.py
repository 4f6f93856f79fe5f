"""Which library files a job runs on."""

from __future__ import annotations

import pytest

from fedrepro.algorithms import ALGORITHMS
from fedrepro.data.datasets import DATASETS
from fedrepro.data.partitions import PARTITIONS
from fedrepro.models import MODELS
from fedrepro.workflow import code_inputs as sources
from fedrepro.workflow.code_inputs import files_behind, module_of, training_files


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a made-up fedrepro and reads these instead of the real ones."""
    cached = [files_behind, module_of, sources._tree, sources._file, sources._imports]
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "SOURCE", tmp_path / "src")

    def write(modules: dict[str, str]) -> None:
        for name, text in modules.items():
            path = tmp_path / "src" / "fedrepro" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    yield write
    for function in cached:
        function.cache_clear()


def names(files) -> set[str]:
    assert all(f.startswith("src/fedrepro/") for f in files)
    return {f.removeprefix("src/fedrepro/") for f in files}


def test_imports_are_followed_in_every_form(package):
    package(
        {
            "a.py": "from fedrepro.b import thing\nimport fedrepro.c\nfrom fedrepro.core import d\nimport numpy\n",
            "b.py": "def f():\n    try:\n        pass\n    except Exception:\n        from fedrepro.e import late\n",
            "c.py": "",
            "core/__init__.py": "",
            "core/d.py": "import fedrepro.a\n",
            "e.py": "",
            "unrelated.py": "",
        }
    )
    assert names(files_behind("fedrepro.a")) == {"a.py", "b.py", "c.py", "core/__init__.py", "core/d.py", "e.py"}
    assert files_behind("fedrepro.a", "fedrepro.unrelated")[-1] == "src/fedrepro/unrelated.py"


def test_imports_for_the_type_checker_alone_do_not_count(package):
    package(
        {"a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fedrepro import b\n", "b.py": ""},
    )
    assert names(files_behind("fedrepro.a")) == {"a.py"}


def test_a_registry_is_not_followed_but_its_module_can_be_asked_for(package):
    package(
        {
            "training.py": "from fedrepro.algorithms import ALGORITHMS\n",
            "algorithms/one.py": "from fedrepro.algorithms.two import Two\n",
            "algorithms/two.py": "",
            "algorithms/three.py": "",
            "algorithms/__init__.py": "from fedrepro.algorithms.one import One\n"
            "from fedrepro.algorithms.three import Three as Third\n"
            "ALGORITHMS: dict[str, type] = {'one': One, 'third': Third}\n",
        }
    )
    assert names(files_behind("fedrepro.workflow.train_job")) == {"training.py"}
    assert module_of("algorithms", "third") == "fedrepro.algorithms.three"
    assert names(files_behind(module_of("algorithms", "one"))) == {"algorithms/one.py", "algorithms/two.py"}
    with pytest.raises(KeyError, match=r"two is not in fedrepro\.algorithms"):
        module_of("algorithms", "two")


@pytest.mark.parametrize(
    ("registry", "entries"),
    [
        ("algorithms", ALGORITHMS),
        ("models", MODELS),
        ("partitions", PARTITIONS),
        ("datasets", {name: entry.load for name, entry in DATASETS.items()}),
    ],
)
def test_what_is_read_from_the_source_is_what_is_registered(registry, entries):
    assert {name: module_of(registry, name) for name in entries} == {n: e.__module__ for n, e in entries.items()}


def test_a_training_job_runs_on_its_own_method_and_what_that_extends():
    files = names(training_files(["fedprox"], "linear"))
    assert {"algorithms/fedprox.py", "algorithms/fedavg.py", "core/rounds.py", "models/linear.py"} <= files
    assert not {"algorithms/toy.py", "algorithms/__init__.py", "models/mlp.py", "models/__init__.py"} & files
    assert not {f for f in files if f.startswith(("artefacts/", "measures/", "report/", "ledger"))}


def test_only_files_that_exist_are_named():
    assert all((sources.ROOT / f).is_file() for f in training_files(["toy"], "mlp"))
