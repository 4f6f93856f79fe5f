"""The counts of the overview notebook."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import yaml

from fedrepro.report.notebook import Overview

ROWS = [
    ("toy", "value", "reproduced", ""),
    ("toy", "ordering", "not tested", "one seed; Fig. 3"),
    ("toy", "ordering", "not tested", "one seed"),
    ("other", "ordering", "contradicted by the source", "3 ≠ 2"),
]


@pytest.fixture
def overview(tmp_path) -> Overview:
    ledger = pd.DataFrame(ROWS, columns=["study", "kind", "verdict", "reason"])
    ledger = ledger.assign(claim="toy/a", source="§1", statement="It is <so>.", published=1.0, ours=2.0)
    ledger.to_csv(tmp_path / "ledger.csv", index=False)
    for shard, seconds in (("0-1", 30.0), ("2-3", 90.0)):
        path = tmp_path / "runs" / "toy" / "line" / "toy" / f"{shard}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        run = {"seconds": seconds, "peak_memory_mb": 10 * seconds, "gradient_steps": 7, "diverged": [{"seed": 0}]}
        path.write_text(json.dumps(run))
    return Overview(tmp_path)


def test_claims_are_counted_by_study_and_by_kind(overview):
    summary = overview.summary()
    assert summary.index.tolist() == ["toy", "other", "all"]
    assert summary.loc["toy"].tolist() == [1, 0, 0, 0, 2, 3]
    assert summary.loc["all"].tolist() == [1, 0, 0, 1, 2, 4]
    assert overview.by_kind().loc["ordering"].tolist() == [0, 0, 0, 1, 2]


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


def test_sentences_are_shown_as_text(overview, monkeypatch):
    shown = []
    monkeypatch.setattr("fedrepro.report.notebook.display", lambda item: shown.append(item.data))
    overview.verdicts("reproduced")
    assert "It is &lt;so&gt;." in shown[0]
    assert shown[0].count("<tr>") == 1


def test_assumed_settings_are_counted(overview, tmp_path):
    folder = tmp_path / "config" / "studies" / "toy" / "experiments"
    folder.mkdir(parents=True)
    for name in ("line", "ring"):
        text = yaml.safe_dump({"rounds": 3}).replace("3", "3 # assumed: why not")
        (folder / f"{name}.yaml").write_text(text)
    assert overview.assumed(tmp_path / "config").loc["toy"].tolist() == [1, 0]
    assert overview.assumed(tmp_path / "nowhere").empty
