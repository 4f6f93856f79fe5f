"""The form of the workflow's files: short, documented, nothing run on import, no `run:`."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from fedrepro.files import ROOT

RULE_FILES = sorted((ROOT / "workflow" / "rules").glob("*.smk"))
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))


def rules() -> dict[str, str]:
    """Name → text of every rule of workflow/rules."""
    found = {}
    for path in RULE_FILES:
        for part in re.split(r"(?m)^(?=\S)", path.read_text()):
            if match := re.match(r"rule (\w+):\n", part):
                found[match[1]] = part
    return found


def test_the_snakefile_only_includes_and_names_targets():
    text = (ROOT / "Snakefile").read_text()
    assert len(text.splitlines()) <= 40
    included = re.findall(r'include: "(workflow/rules/\w+\.smk)"', text)
    assert sorted(included) == [str(p.relative_to(ROOT)) for p in RULE_FILES]
    assert not re.search(r"(?m)^\s+(script|shell|run|output):", text)


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda p: p.name)
def test_a_rule_file_opens_with_what_it_needs_and_makes(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 150
    assert re.match(r'"""Needs [^"]*Makes ', text)
    assert not re.search(r"(?m)^\s*run:", text)


@pytest.mark.parametrize("name", rules())
def test_a_rule_says_what_it_does_and_where_it_logs(name):
    text = rules()[name]
    assert re.match(r'rule \w+:\n    """[A-Z].+\."""\n', text)
    keys = re.findall(r"(?m)^    (\w+):", text)
    assert {"input", "output", "log", "benchmark", "conda", "resources", "message", "script"} <= set(keys)
    assert f'"../../scripts/{name}.py"' in text
    resources = re.search(r"(?m)^    resources:\n((?:        .*\n)+)", text)[1]
    assert {"mem_mb", "runtime"} <= set(re.findall(r"(\w+)=", resources))


def test_only_training_asks_for_a_gpu():
    assert [name for name, text in rules().items() if re.search(r"\bgpu=", text)] == ["train_algorithm"]


def test_there_is_one_script_per_rule():
    assert [p.stem for p in SCRIPTS] == sorted(rules())


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_a_script_is_a_main_and_the_unpacking(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    docstring, *body = ast.parse(text).body
    assert ast.get_docstring(ast.Module([docstring], [])).startswith(f"Rule {path.stem}: ")
    *before, last = body
    assert all(isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef) for node in before)
    assert ast.unparse(last).startswith("if 'snakemake' in globals():\n    with job(snakemake")
    assert not re.search(r"(?m)^\s*(from|import) scripts", text)
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert callable(module.main)
