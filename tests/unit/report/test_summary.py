"""The tables that the README and the findings take from the reference."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.core.study import load_studies
from fedrepro.report.summary import findings, summary, with_summary, write_tables
from tests.configs import write_config, write_study, write_yaml

HEADLINE = {"quote": "it is best", "place": "Abstract", "says": "It is better.", "claims": ["a", "b"], "rule": "all"}
LEDGER = pd.DataFrame(
    [
        ("toy/a", "paper", "reproduced", "5"),
        ("toy/b", "paper", "undecided", "10"),
        ("toy/c", "paper", "not tested", ""),
        ("toy/d", "printed", "contradicted by the source", ""),
        ("toy/e", "added", "reproduced", "5"),
    ],
    columns=["claim", "origin", "verdict", "seeds"],
).assign(study="toy", scale="demo", data="real", evidence="published settings")
HEADLINES = pd.DataFrame(
    [("best", "undecided", "a b"), ("other", "reproduced", "c")], columns=["headline", "verdict", "claims"]
).assign(study="toy", says="It is better.", quote="it is best", place="Abstract", reason="of 2 claims: …")


@pytest.fixture
def root(tmp_path):
    write_config(tmp_path)
    folder = write_study(tmp_path / "config", "toy")
    about = {"title": "Toys", "authors": ["A"], "venue": "Toys 2020", "link": "https://example.org", "caveat": "Small."}
    write_yaml(folder / "study.yaml", {**about, "main": "best", "headlines": {"best": HEADLINE}})
    return tmp_path


def test_a_row_has_the_message_the_verdict_its_evidence_and_the_caveat(root):
    head, _, row = summary(LEDGER, HEADLINES, root / "config").splitlines()
    assert head == "| study | main message | holds? | evidence | biggest caveat |"
    evidence = "2 claims, published settings, 5–10 seeds, real data"
    holds = "? undecided; 1 of 2 headlines reproduced"
    assert row == f"| [`toy`](docs/findings/toy.md) | “it is best” | {holds} | {evidence} | Small. |"


def test_reduced_settings_are_told_by_the_scale(root):
    reduced = LEDGER.assign(evidence="reduced: rounds")
    assert "2 claims, scale demo, 5–10 seeds, real data" in summary(reduced, HEADLINES, root / "config")


def test_claims_that_were_not_run_are_told_apart(root):
    part = LEDGER.assign(evidence=["published settings", "", "", "", ""])
    assert "| 1 of 2 claims run, published settings, 5 seeds, real data |" in summary(part, HEADLINES, root / "config")
    assert "| 2 claims, none run yet |" in summary(LEDGER.assign(evidence=""), HEADLINES, root / "config")


def test_a_study_without_a_reference_run_says_so(root):
    *_, row = summary(LEDGER[:0], HEADLINES[:0], root / "config").splitlines()
    assert row == "| [`toy`](docs/findings/toy.md) | “it is best” | not run yet |  | Small. |"
    assert "no reference run yet" in findings(load_studies(root / "config")["toy"], LEDGER[:0], HEADLINES[:0])


def test_findings_list_the_headlines_and_count_claims_by_origin(root):
    text = findings(load_studies(root / "config")["toy"], LEDGER, HEADLINES)
    assert "| ? undecided | It is better. | “it is best” (Abstract) | of 2 claims: … |" in text
    counts = "the paper's own claims: 1 reproduced, 1 undecided, 1 not tested; arithmetic on printed numbers: "
    assert f"scale `demo`. Claims: {counts}1 contradicted by the source; added by us: 1 reproduced.\n" in text


def test_both_texts_are_written_between_their_marks(root):
    marks = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter\n"
    (root / "docs" / "findings").mkdir(parents=True)
    for name in ("README.md", "docs/findings/toy.md"):
        (root / name).write_text(marks)
    write_tables(LEDGER, HEADLINES, root)
    assert (root / "README.md").read_text() == with_summary(marks, summary(LEDGER, HEADLINES, root / "config"))
    assert "| verdict | headline |" in (root / "docs/findings/toy.md").read_text()


def test_only_the_place_between_the_marks_changes():
    text = "before\n<!-- summary -->\nold\n<!-- /summary -->\nafter <!-- x -->\n"
    assert with_summary(text, "new \\1\n") == text.replace("old\n", "new \\1\n")
    with pytest.raises(ValueError, match="no marks"):
        with_summary("nothing", "new")
