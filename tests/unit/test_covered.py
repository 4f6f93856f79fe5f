"""`make coverage`: its limit is on lines alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fedrepro.files import ROOT
from tests import covered

MODULE = "def sign(x):\n    if x < 0:\n        return -1\n    return 1\nsign(1)\n"


def test_shares_of_lines_and_branches():
    totals = {"covered_lines": 9, "num_statements": 10, "covered_branches": 1, "num_branches": 4}
    assert covered.shares(totals) == (90.0, 25.0)
    assert covered.shares({**totals, "covered_branches": 0, "num_branches": 0}) == (90.0, 100.0)


@pytest.mark.parametrize(("least", "error"), [(80, None), (81, "error: fewer than 81 % of the lines are covered")])
def test_too_few_lines_are_an_error(tmp_path, monkeypatch, capsys, least, error):
    """Four of five lines and one of two branches."""
    (tmp_path / "module.py").write_text(MODULE)
    command = [sys.executable, "-m", "coverage", "run", "--branch", "--source=.", "-m", "module"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    subprocess.run(command, check=True, timeout=60)
    told = covered.main(least)
    assert told == error
    assert capsys.readouterr().out == "covered: 80.0 % of the lines, 50.0 % of the branches\n"


def test_the_make_target_asks_for_ninety_per_cent():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ncoverage:")[2].partition("\n\n")[0]
    assert "--cov" in recipe
    assert "python -m tests.covered 90" in recipe
