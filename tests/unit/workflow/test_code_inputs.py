"""The library files that a job depends on."""

from __future__ import annotations

import pytest

from fedrepro.workflow import code_inputs as sources
from fedrepro.workflow.code_inputs import code_sha256, files_behind, syntax_sha256, training_files


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes the modules of a made-up fedrepro, which is read instead of the real one."""
    cached = [files_behind, code_sha256, syntax_sha256, sources._tree, sources._file, sources._imports]
    for function in cached:
        function.cache_clear()
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources.parts, "PACKAGE", tmp_path / "src" / "fedrepro")

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


FILE = """\
\"\"\"Doubles.\"\"\"
import math


class Doubler:
    \"\"\"It doubles.\"\"\"

    def run(self, x: float, *, by: float = 2.0) -> float:
        \"\"\"Twice.\"\"\"
        return math.fabs(x) * by  # never negative
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("never negative", "at least 0", True),
        ("Twice.", "Two times.", True),
        ('"""Doubles."""', '"""Doubles a number."""', True),
        ("        return", "\n        return", True),
        ("(x) * by", "( x )*by", True),
        ("by: float = 2.0", "by: float = 3.0", False),
        ("math.fabs(x)", "math.ceil(x)", False),
        ("import math", "import math, os", False),
        ("* by", "* (by, 'a')[0]", False),
        ("class Doubler:", "class Doubler(object):", False),
    ],
)
def test_the_hash_is_of_what_the_code_does(package, old, new, same):
    assert old in FILE
    package({"a.py": FILE, "b.py": FILE.replace(old, new, 1)})
    first, second = (syntax_sha256(f"src/fedrepro/{name}.py") for name in "ab")
    assert (first == second) is same


def test_the_hash_of_a_job_is_of_its_files_and_their_names(package):
    package({"a.py": "X = 1\n", "b.py": "X = 2\n", "c.py": "X = 1\n"})
    files = {name: f"src/fedrepro/{name}.py" for name in "abc"}
    whole = code_sha256((files["a"], files["b"]))
    assert code_sha256((files["b"], files["a"])) == whole
    assert code_sha256((files["a"],)) != whole
    assert code_sha256((files["c"], files["b"])) != whole


def test_a_file_that_is_no_python_counts_by_its_content(package):
    package({"page.css": "a {}", "other.css": "a { }"})
    assert syntax_sha256("src/fedrepro/page.css") != syntax_sha256("src/fedrepro/other.css")
