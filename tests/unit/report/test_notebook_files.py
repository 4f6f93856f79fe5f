"""The notebooks of the checkout: parameters, prose and calls. What a run showed is computed from its results, so that a
notebook says nothing at demo scale that only the published settings show."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from fedrepro.files import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
IMPORTED = {"pathlib", "fedrepro.files", "fedrepro.report.notebook"}
#: percentages in the prose, all of them settings or rules of a paper or of ours; a result belongs into a call
SETTINGS = {"5 %", "40 %", "60 %", "90 %"}
#: how prose tells results: "we find", "turns out", "as our runs show", "it was reproduced"
TOLD = re.compile(
    r"\b(we|runs?|results?) (find|found|see|saw|observe|observed|show|shows|showed|confirm|confirms)\b|\bturns? out\b"
    r"|\b(is|are|was|were) (not )?(reproduced|contradicted|undecided|refuted|confirmed)\b|\bindeed\b|\bin our runs?\b"
)


def cells(path: Path, kind: str) -> list[str]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def without_quotes(text: str) -> str:
    """Prose without the papers' words and without headings, which may name a verdict."""
    return re.sub(r"\"[^\"]*\"|“[^”]*”|(?m:^#.*)", "", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_prose_tells_no_result(path):
    prose = [without_quotes(text) for text in cells(path, "markdown")]
    assert prose
    assert not [told[0] for text in prose for told in TOLD.finditer(text)]
    assert {found for text in prose for found in re.findall(r"\d[\d.]* ?%", text)} <= SETTINGS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_is_parameters_and_calls(path):
    trees = [ast.parse(code) for code in cells(path, "code")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert not [n for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.For | ast.While)]
    assert not [n for n in nodes if isinstance(n, ast.Import)]
    assert {node.module for node in nodes if isinstance(node, ast.ImportFrom)} <= IMPORTED


@pytest.mark.parametrize("told", ["We find that it holds.", "It turns out lower.", "The claim was not reproduced."])
def test_told_results_are_recognised(told):
    assert TOLD.search(told.lower())
    assert not TOLD.search(without_quotes(f'The paper says "{told.lower()}"'))
