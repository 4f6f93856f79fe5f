"""`fedrepro next`: open claims, the cheapest first."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.commands import cli, command, plan
from fedrepro.evidence.ledger import COLUMNS
from fedrepro.workflow.layout import Layout
from tests.configs import write_config, write_study

ROWS = [
    ("toy/dear", "paper", "undecided", "900 more seeds, about 2.0 h"),
    ("toy/done", "paper", "reproduced", ""),
    ("toy/ours", "added", "undecided", "1 more seed, about 1 s"),
    ("toy/short", "paper", "not tested", "rounds 100 (has 20), about 3 min"),
    ("toy/gone", "paper", "not tested", "a run of ring"),
    ("toy/odd", "paper", "not tested", ""),
]


def write_ledger(path, rows):
    frame = pd.DataFrame([dict(zip(("claim", "origin", "verdict", "next"), row, strict=True)) for row in rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.assign(reason="no metric").reindex(columns=COLUMNS, fill_value="").to_csv(path, index=False)


@pytest.fixture
def results(tmp_path, monkeypatch):
    write_config(tmp_path)
    write_study(tmp_path / "config", "other")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "CONFIG", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    write_ledger(tmp_path / "results" / "smoke" / "ledgers" / "toy.csv", ROWS)
    return tmp_path / "results" / "smoke"


def told(capsys, *arguments) -> list[str]:
    assert cli.main(["next", *arguments]) == 0
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_open_claims_by_cost(results, capsys):
    lines = told(capsys)
    assert lines == [
        "about 3 min toy/short not tested rounds 100 (has 20)",
        "about 2.0 h toy/dear undecided 900 more seeds",
        "toy/gone not tested a run of ring",
        "toy/odd not tested no metric",
        "open claims of the papers: 1 undecided, 3 not tested; at most about 2.0 h for 2 of them",
    ]
    assert told(capsys, "toy") == lines
    assert told(capsys, "--in", str(results)) == lines


def test_nothing_open(results, capsys):
    write_ledger(results / "ledgers" / "toy.csv", ROWS[1:3])
    assert told(capsys) == ["no claim of the papers is open"]


def test_a_study_without_a_ledger(results, capsys):
    assert cli.main(["next", "other"]) == 1
    assert "no result of ledger of other yet" in capsys.readouterr().err
    assert cli.main(["next", "tooy"]) == 1
    assert "did you mean 'toy'" in capsys.readouterr().err


def test_the_plan_counts_the_same_claims(results):
    config = {**write_config(results.parents[1]), "results": str(results.parent)}
    words = "open claims of the papers: 1 undecided, 3 not tested; at most about 2.0 h for 2 of them"
    assert words in plan.describe(Layout(config), 2)
    assert "open claims" not in plan.describe(Layout({**config, "scale": "demo"}), 2)
