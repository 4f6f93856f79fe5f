"""The counts of the overview notebook."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from fedrepro.core.study import load_studies
from fedrepro.files import ROOT
from fedrepro.report.notebook import Overview, Study
from fedrepro.report.notebook_tables import Table, as_html
from fedrepro.workflow.run_notebook import as_page
from tests.configs import write_config
from tests.pages import HEADLINES, LEDGER, write_rows

ROWS = [
    ("toy", "paper", "value", "reproduced", ""),
    ("toy", "paper", "ordering", "not tested", "one seed; Fig. 3"),
    ("toy", "paper", "ordering", "not tested", "one seed"),
    ("toy", "added", "ordering", "not reproduced", "no"),
    ("other", "printed", "consistency", "contradicted by the source", "3 ≠ 2"),
    ("other", "paper", "trend", "undecided", "across"),
]
ROW = {"source": "§1", "statement": "It is <so>.", "our_test": "above 2", "ours": "2.3456789", "ci_low": "2.1"}
ROW |= {"ci_high": "2.5", "p": "0.0312", "p_holm": "0.0624", "hint": "a hint", "next": "3 more seeds"}
ROW |= {"evidence": "published settings", "seeds": "5", "data": "real"}


@pytest.fixture
def overview(tmp_path) -> Overview:
    names = ("study", "origin", "kind", "verdict", "reason")
    rows = [ROW | dict(zip(names, row, strict=True)) | {"claim": f"{row[0]}/{at}"} for at, row in enumerate(ROWS)]
    write_rows(tmp_path / "ledger.csv", LEDGER, rows)
    write_rows(tmp_path / "ledgers" / "toy.csv", LEDGER, [row for row in rows if row["study"] == "toy"])
    others = [rows[0] | {"reading": "the sum", "verdict": "undecided"}, rows[1] | {"reading": "not asked for"}]
    write_rows(tmp_path / "readings" / "toy.csv", LEDGER, others)
    headline = {"headline": "it", "study": "toy", "main": True, "says": "So <it> is.", "verdict": "undecided"}
    for path in (tmp_path / "headlines.csv", tmp_path / "headlines" / "toy.csv"):
        write_rows(path, HEADLINES, [headline, headline | {"main": False, "says": "And so."}])
    for shard, seconds in (("0-1", 30.0), ("2-3", 90.0)):
        path = tmp_path / "runs" / "toy" / "line" / "toy" / f"{shard}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        run = {"seconds": seconds, "peak_memory_mb": 10 * seconds, "gradient_steps": 7, "diverged": [{"seed": 0}]}
        path.write_text(json.dumps(run))
    return Overview(tmp_path)


@pytest.fixture
def study(overview) -> Study:
    return Study(overview.results, "toy")


@pytest.fixture
def shown(monkeypatch) -> list[pd.DataFrame]:
    """Tables of sentences that were displayed."""
    tables: list[pd.DataFrame] = []
    monkeypatch.setattr("fedrepro.report.notebook._prose", lambda table, summary="": tables.append(table))
    return tables


def test_titles_and_captions_are_text_whatever_they_contain(study, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda it: told.append(getattr(it, "data", "")))
    base = study.results / "artefacts" / "toy" / "table"
    base.parent.mkdir(parents=True)
    nasty = "<script>alert(1)</script> ![x](https://example.org/x.png)"
    about = {"title": nasty, "source": nasty, "data": [nasty], "kind": "table", "caption": nasty}
    base.with_suffix(".json").write_text(json.dumps(about))
    base.with_suffix(".csv").write_text("a\n1\n")
    study.show("table")
    assert len(told) == 3
    assert [text.count("&lt;script&gt;") for text in told] == [3, 0, 1]
    assert "<script>" not in "".join(told)


def test_the_papers_own_claims_are_counted_by_study_and_by_kind(overview):
    summary = overview.summary()
    assert summary.index.tolist() == ["toy", "other", "all"]
    assert summary.columns[-3:].tolist() == ["claims", "arithmetic on printed numbers", "added by us"]
    assert summary.loc["toy"].tolist() == [1, 0, 0, 0, 0, 2, 3, 0, 1]
    assert summary.loc["other"].tolist() == [0, 0, 0, 1, 0, 0, 1, 1, 0]
    assert summary.loc["all"].tolist() == [1, 0, 0, 1, 0, 2, 4, 1, 1]
    assert overview.by_kind().loc["ordering"].tolist() == [0, 0, 0, 0, 0, 2]
    assert "consistency" not in overview.by_kind().index


def test_a_study_counts_its_claims_by_origin(study):
    summary = study.summary()
    assert summary.columns.tolist() == ["the paper's own claims", "arithmetic on printed numbers", "added by us"]
    assert summary.loc["not tested"].tolist() == [2, 0, 0]
    assert summary.loc["not reproduced"].tolist() == [0, 0, 1]


def test_claims_are_shown_with_test_numbers_and_evidence(study, shown):
    study.verdicts("0", "3")
    study.verdicts()
    assert shown[0]["claim"].tolist() == ["toy/0", "toy/3"]
    assert len(shown[1]) == 4
    assert shown[0].iloc[1].to_dict() == {
        "claim": "toy/3",
        "paper says": "It is <so>.",
        "our test": "above 2",
        "ours": "2.346",
        "interval": "[2.1, 2.5]",
        "p": "0.031, corrected 0.062",
        "verdict": "not reproduced",
        "reason": "no Hint: a hint. To decide it: 3 more seeds.",
        "evidence": "published settings, 5 seeds, real",
        "reading": "",
        "origin": "added",
    }


def test_a_few_named_claims_are_told_in_sentences_of_this_run(study, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda what: said.append(what.data))
    study.verdicts("1", "3")
    assert said[0] == (
        "<ul><li><strong>– not tested</strong>: It is &lt;so&gt;. One seed; Fig. 3.</li>"
        "<li><strong>✗ not reproduced</strong>: It is &lt;so&gt;. No.</li></ul>"
    )
    assert said[1].startswith("<details>")


def test_readings_of_a_claim(study, shown):
    study.readings("0")
    assert shown[0][["reading", "verdict"]].values.tolist() == [
        ["as we read it", "reproduced"],
        ["the sum", "undecided"],
    ]


def test_headlines_are_shown(study, overview, shown):
    study.headlines()
    overview.headlines()
    for table in shown:
        assert table["says"].tolist() == ["So <it> is.", "And so."]
        assert table["main"].tolist() == ["main", ""]


def test_errata_of_one_study_have_no_row_numbers(study, shown, tmp_path):
    write_config(tmp_path)
    study.errata(tmp_path / "config")
    assert shown[0].columns[0] == "severity"
    assert "<td>0</td>" not in as_html(shown[0])


def test_errata_are_shown_by_severity(overview, shown, tmp_path):
    erratum = {"place": "§2", "printed": "N", "should_be": "L", "how": "§3"}
    severities = ("slip", "breaks")
    entries = [{**erratum, "place": severity, "severity": severity} for severity in severities]
    path = tmp_path / "config" / "studies" / "toy" / "errata.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(entries))
    overview.errata(tmp_path / "config")
    assert shown[0]["severity"].tolist() == ["breaks", "slip", "computed"]
    assert shown[0]["study"].tolist() == ["toy", "toy", "other"]


def test_why_claims_have_no_verdict(overview):
    assert overview.untested().values.tolist() == [["toy", "one seed", 2]]


def test_no_claim_may_be_left_without_a_verdict(overview):
    ledger = overview.ledger()
    ledger[ledger["verdict"] != "not tested"].to_csv(overview.results / "ledger.csv", index=False)
    assert overview.untested().empty


def test_cost_of_a_study(overview):
    cost = overview.cost()
    assert cost.index.tolist() == ["toy"]  # there is no manifest of the other study
    assert cost.loc["toy"].tolist() == [2, 2.0, 900.0, 14, 2]


def test_verdicts_of_one_origin_are_shown(overview, shown):
    overview.verdicts("reproduced")
    overview.verdicts("not reproduced")
    overview.verdicts("not reproduced", "added")
    assert [len(table) for table in shown] == [1, 0, 1]
    assert shown[0]["paper says"].tolist() == ["It is <so>."]


def test_sentences_are_shown_whole_and_as_text(overview, monkeypatch):
    displayed = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda item: displayed.append(item.data))
    ledger = pd.read_csv(overview.results / "ledger.csv", dtype=str)
    ledger.assign(statement="It is <so> " * 20).to_csv(overview.results / "ledger.csv", index=False)
    overview.verdicts("reproduced")
    assert displayed[0].count("It is &lt;so&gt;") == 20
    assert displayed[0].count("<tr>") == 2  # the head and one claim


def test_assumed_settings_are_counted(overview, tmp_path):
    folder = tmp_path / "config" / "studies" / "toy" / "experiments"
    folder.mkdir(parents=True)
    for name in ("line", "ring"):
        text = yaml.safe_dump({"rounds": 3, "assumptions": {"rounds": {"why": "why not", "also": [4]}}})
        (folder / f"{name}.yaml").write_text(text)
    assert overview.assumed(tmp_path / "config").loc["toy"].tolist() == [1, 0]
    assert overview.assumed(tmp_path / "nowhere").empty


def test_the_opening_has_authors_and_the_verdict_on_the_main_message(study, shown, monkeypatch, tmp_path):
    write_config(tmp_path)
    said: list[str] = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda what: said.append(what.data))
    study.opening(tmp_path / "config")
    assert said[0] == "<p>Ann: <em>Toys</em> (Toys 2020)</p>"
    assert said[1].startswith("<p><strong>? undecided</strong>: ")
    assert "0 of 2 headlines are reproduced" in said[2]
    assert "study" not in shown[0]


def test_a_table_has_no_row_numbers_no_nan_and_words_at_the_left():
    table = Table({"who": ["<a>", None], "much": [1.23456, float("nan")], "many": [12345, 2]})
    told = table._repr_html_()
    assert '<td class="words">&lt;a&gt;</td><td class="number">1.235</td><td class="number">12,345</td>' in told
    assert '<td class="words"></td><td class="number"></td><td class="number">2</td>' in told
    assert "nan" not in told.lower()
    assert '<td class="words">row</td>' in as_html(pd.DataFrame({"n": [1]}, index=["row"]))


def test_claims_are_folded_below_their_counts(study, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda what: said.append(what.data))
    study.verdicts()
    assert said[0].startswith("<details><summary>4 claims: 1 reproduced, 1 not reproduced, 2 not tested</summary>")


@pytest.mark.parametrize("name", load_studies(ROOT / "config"))
def test_a_notebook_begins_with_the_papers_title_and_its_verdict(name):
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    title = load_studies(ROOT / "config")[name].title
    assert "".join(cells[0]["source"]).startswith(f"# {title}\n")
    assert "".join(cells[2]["source"]).endswith(f"{name}.opening()")


def test_an_executed_notebook_is_a_page_with_folded_code_and_no_address_outside(tmp_path):
    figure = new_output("display_data", {"text/html": '<img src="data:," alt="a line">'})
    cells = [
        new_markdown_cell("# Toys and `more`"),
        new_code_cell("results = 'x'"),
        new_code_cell("show()", outputs=[figure]),
    ]
    page = as_page(new_notebook(cells=cells))
    assert "<title>Toys and more</title>" in page
    assert page.count('<details class="code"><summary>code</summary>') == 1
    assert not re.findall(r"https?://", page)
    assert 'alt="a line"' in page
