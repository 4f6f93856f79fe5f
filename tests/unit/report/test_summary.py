"""The README's table."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.report.summary import summary, with_summary
from tests.configs import write_config

LEDGER = pd.DataFrame(
    [
        ("paper", "reproduced"),
        ("paper", "not tested"),
        ("paper", "reproduced"),
        ("paper", "undecided"),
        ("printed", "reproduced"),
        ("printed", "contradicted by the source"),
        ("added", "reproduced"),
    ],
    columns=["origin", "verdict"],
).assign(study="toy", scale="demo")
HEADLINES = pd.DataFrame({"study": ["toy"] * 3, "verdict": ["undecided", "reproduced", "undecided"]})


def test_one_row_per_study_with_origins_apart(tmp_path):
    write_config(tmp_path)
    head, _, row = summary(LEDGER, HEADLINES, tmp_path / "config").splitlines()
    verdicts = "reproduced | direction | not reproduced | undecided | contradicted by the source | not tested"
    assert head == f"| study | paper | scale | headlines | {verdicts} | printed | added |"
    headlines = "1 reproduced, 2 undecided"
    assert row == f"| `toy` | Toys (Toys 2020) | demo | {headlines} | 2 | 0 | 0 | 1 | 0 | 1 | 2, 1 contradicted | 1 |"


def test_a_study_with_claims_of_one_origin_and_no_headline(tmp_path):
    write_config(tmp_path)
    *_, row = summary(LEDGER.query("origin == 'added'"), HEADLINES[:0], tmp_path / "config").splitlines()
    assert row == "| `toy` | Toys (Toys 2020) | demo |  | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |"


def test_only_the_place_between_the_marks_changes():
    text = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter <!-- x -->\n"
    assert with_summary(text, "new \\1\n") == text.replace("old\n", "new \\1\n")
    with pytest.raises(ValueError, match="no marks"):
        with_summary("nothing", "new")
