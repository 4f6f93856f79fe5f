"""The README's table."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.commands.reference import summary, with_summary
from tests.configs import write_config

LEDGER = pd.DataFrame(
    {"study": ["toy"] * 3, "scale": ["demo"] * 3, "verdict": ["reproduced", "not tested", "reproduced"]}
)


def test_one_row_per_study_and_one_column_per_verdict(tmp_path):
    write_config(tmp_path)
    head, _, row = summary(LEDGER, tmp_path / "config").splitlines()
    assert head.endswith("| reproduced | direction | not reproduced | contradicted by the source | not tested |")
    assert row == "| `toy` | Toys (Toys 2020) | demo | 2 | 0 | 0 | 0 | 1 |"


def test_only_the_place_between_the_marks_changes():
    text = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter <!-- x -->\n"
    assert with_summary(text, "new \\1\n") == text.replace("old\n", "new \\1\n")
    with pytest.raises(ValueError, match="no marks"):
        with_summary("nothing", "new")
