"""Names in claims and headlines are checked against experiments, code and published numbers before a run."""

from __future__ import annotations

import pytest

from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT
from fedrepro.workflow.claim_checks import check_claims
from tests.configs import STUDY, changed, write_config, write_yaml

OURS = {"experiment": "line", "algorithm": "fedavg", "metric": "loss"}
CLAIMS = {
    "defaults": {"origin": "paper", "measured_on": "synthetic"},
    "claims": {
        "small": {
            "source": "§1",
            "statement": "It is small.",
            "kind": "value",
            "ours": {**OURS, "setting": "lr=0.2"},
            "published": "loss",
            "tolerance": {"relative": 0.1},
            "needs": {"rounds": "reach", "dataset.samples": "equal"},
        },
        "falls": {
            "source": "§2",
            "statement": "It falls.",
            "kind": "trend",
            "ours": {**OURS, "along": "lr"},
            "direction": "falling",
        },
        "ahead": {
            "source": "§3",
            "statement": "A short step is better.",
            "kind": "ordering",
            "better": {**OURS, "setting": "lr=0.1"},
            "worse": {**OURS, "setting": "lr=0.2"},
            "by": "lower",
            "margin": {"relative": 0.1},
        },
        "own": {
            "source": "ours",
            "origin": "added",
            "statement": "So.",
            "kind": "threshold",
            "ours": {**OURS, "setting": "lr=0.1"},
            "at_most": "loss",
        },
    },
}
HEADLINE = {"quote": "small", "place": "Abstract", "says": "It is small.", "claims": ["sm*", "falls"], "rule": "all"}
MAIN = {"main": "first", "headlines": {"first": HEADLINE}}


def check(tmp_path, changes=None, study=None):
    write_config(tmp_path, {"algorithms.fedavg.grid": {"lr": [0.1, 0.2]}})
    folder = tmp_path / "config" / "studies" / "toy"
    write_yaml(folder / "claims.yaml", changed(CLAIMS, changes or {}))
    write_yaml(folder / "study.yaml", changed({**STUDY, **MAIN}, study or {}))
    (folder / "published.csv").write_text("id,place,quantity,value,spread,runs,unit,read\nloss,§1,loss,3,,,,text\n")
    config = tmp_path / "config"
    path = folder / "claims.yaml"
    check_claims(load_claims(path), load_studies(config)["toy"], load_experiments(config, "paper"), path)


def test_what_is_there_passes(tmp_path):
    check(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("small.ours.experiment", "lin", "small.ours.experiment: there is no experiment 'lin'; did you mean 'line'?"),
        ("small.ours.algorithm", "fedavgg", "there is no algorithm of line 'fedavgg'; did you mean 'fedavg'?"),
        ("small.ours.setting", "lr=0.3", "small.ours.setting: 'lr=0.3' is no setting of line; did you mean 'lr=0."),
        (
            "small.ours.metric",
            "losss",
            "small.ours.metric: 'losss' is made by no code behind line; did you mean 'los",
        ),
        ("falls.ours.along", "rl", "falls.ours.along: there is no key of a grid of line 'rl'"),
        ("small.published", "los", "there is no number in toy/published.csv 'los'; did you mean 'loss'?"),
        ("own.at_most", "los", "own.at_most: there is no number in toy/published.csv 'los'"),
        ("small.needs", {"round": "reach"}, "small.needs.round: there is no setting 'round'; did you mean 'rounds'?"),
        ("small.needs", {"dataset.sample": "equal"}, "there is no setting 'sample'; did you mean 'samples'?"),
        ("small.readings", {"b": {"ours": {"metric": "lss"}}}, "small (b).ours.metric: 'lss' is made by no code"),
        ("small.borrow", {"experiment": "lines"}, "there is no experiment 'lines'; did you mean 'line'?"),
        (
            "ahead.borrow",
            {"experiment": "line", "worse": "lin"},
            "ahead.worse.experiment: there is no experiment 'lin'",
        ),
    ],
)
def test_a_name_that_is_not_there_is_an_error_with_the_nearest(tmp_path, key, value, words):
    with pytest.raises(UserError) as refused:
        check(tmp_path, {f"claims.{key}": value})
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("claims", ["smal"], "headlines.first.claims: 'smal' fits no claim; did you mean 'small'?"),
        ("claims", ["own"], "headlines.first.claims: 'own' is of origin added, not paper"),
        ("rule", {"decisive": "smll"}, "headlines.first.rule.decisive: there is no claim 'smll'; did you mean 'small'"),
        ("rule", "al", "headlines.first.rule: 'al' is unknown; did you mean 'all'?"),
    ],
)
def test_a_headline_rests_on_claims_of_the_paper(tmp_path, key, value, words):
    with pytest.raises(UserError) as refused:
        check(tmp_path, study={f"headlines.first.{key}": value})
    assert words in str(refused.value)


def test_the_main_message_is_a_headline(tmp_path):
    with pytest.raises(UserError, match="main: 'frst' is no headline; did you mean 'first'"):
        check(tmp_path, study={"main": "frst"})


@pytest.mark.parametrize("study", load_studies(ROOT / "config").values(), ids=lambda study: study.name)
def test_the_committed_claims_name_what_is_there(study):
    path = study.folder / "claims.yaml"
    check_claims(load_claims(path), study, load_experiments(ROOT / "config", "paper", study.name), path)
