"""The library files that a job depends on."""

from __future__ import annotations

import pytest

from fedrepro.workflow import code_inputs as sources
from fedrepro.workflow.code_inputs import files_behind, training_files


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes the modules of a made-up fedrepro, which is read instead of the real one."""
    cached = [files_behind, sources._tree, sources._file, sources._imports]
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
            "c.py": "X = 1\n",
            "core/__init__.py": "Y = 1\n",
            "core/d.py": "import fedrepro.a\n",
            "e.py": "late = 1\n",
            "unrelated.py": "Z = 1\n",
        }
    )
    assert names(files_behind("fedrepro.a")) == {"a.py", "b.py", "c.py", "core/__init__.py", "core/d.py", "e.py"}
    assert files_behind("fedrepro.a", "fedrepro.unrelated")[-1] == "src/fedrepro/unrelated.py"


def test_imports_for_the_type_checker_alone_do_not_count(package):
    package(
        {"a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fedrepro import b\n", "b.py": ""},
    )
    assert names(files_behind("fedrepro.a")) == {"a.py"}


def test_a_package_that_only_describes_itself_does_not_count(package):
    package(
        {"a.py": "from fedrepro.core import b\n", "core/__init__.py": '"""What it is."""\n', "core/b.py": "X = 1\n"}
    )
    assert names(files_behind("fedrepro.a")) == {"a.py", "core/b.py"}


def test_a_training_job_runs_on_its_own_method_and_what_that_extends():
    files = names(training_files(["fedprox"], "linear"))
    assert {"algorithms/fedprox.py", "algorithms/fedavg.py", "core/rounds.py", "models/linear.py"} <= files
    assert not {"algorithms/ditto.py", "algorithms/__init__.py", "models/mlp.py", "models/__init__.py"} & files
    assert not {f for f in files if f.startswith(("studies/", "report/", "evidence/ledger"))}


def test_only_files_that_exist_are_named():
    assert all((sources.ROOT / f).is_file() for f in training_files(["q_ffl"], "mlp"))
