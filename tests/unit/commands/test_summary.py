"""The README's table."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.commands.summary import PAPERS, summary, with_summary

LEDGER = pd.DataFrame(
    {"study": ["dfl"] * 3, "scale": ["demo"] * 3, "verdict": ["reproduced", "not tested", "reproduced"]}
)


def test_a_row_a_study_a_column_a_verdict():
    head, _, row = summary(LEDGER).splitlines()
    assert head.endswith("| reproduced | direction | not reproduced | contradicted by the source | not tested |")
    assert row == f"| `dfl` | {PAPERS['dfl']} | demo | 2 | 0 | 0 | 0 | 1 |"


def test_only_the_place_between_the_marks_changes():
    text = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter <!-- x -->\n"
    assert with_summary(text, "new \\1\n") == text.replace("old\n", "new \\1\n")
    with pytest.raises(ValueError, match="no place"):
        with_summary("nothing", "new")
