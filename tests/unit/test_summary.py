"""The README's table."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.config import ROOT
from fedrepro.experiment import load_experiments
from fedrepro.ledger import load_claims
from fedrepro.summary import PAPERS, summary, with_summary

LEDGER = pd.DataFrame({"study": ["dfl"] * 3, "verdict": ["reproduced", "not tested", "reproduced"]})


def test_a_row_a_study_a_column_a_verdict():
    head, _, row = summary(LEDGER).splitlines()
    assert head.endswith("| reproduced | direction | not reproduced | contradicted by the source | not tested |")
    assert row == f"| `dfl` | {PAPERS['dfl']} | 2 | 0 | 0 | 0 | 1 |"


def test_only_the_place_between_the_marks_changes():
    text = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter <!-- x -->\n"
    assert with_summary(text, "new \\1\n") == text.replace("old\n", "new \\1\n")
    with pytest.raises(ValueError, match="no place"):
        with_summary("nothing", "new")


def test_the_readme_counts_every_claim():
    """Each study's row adds up to its number of claims."""
    rows = [line.split("|") for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    counted = {row[1].strip(" `"): sum(map(int, row[3:8])) for row in rows if row[1].strip(" `") in PAPERS}
    studies = {e.study for e in load_experiments(ROOT / "config", "demo").values()}
    assert counted == {s: len(load_claims(ROOT / "config" / "claims" / f"{s}.yaml")["claims"]) for s in studies}
