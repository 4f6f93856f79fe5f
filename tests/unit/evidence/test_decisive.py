"""Decisive settings: runs that fall short of the published ones judge nothing, but hint."""

from __future__ import annotations

import pytest

from fedrepro.core.expansion import Located
from fedrepro.evidence.claim_files import Claim, Claims
from fedrepro.evidence.decisive import Gap, evidence, gaps, shortfalls
from fedrepro.evidence.ledger import judge
from tests.configs import changed, experiment
from tests.unit.evidence.made_up import (
    ALGORITHMS,
    COMMON,
    OURS,
    judge_all,
    manifests,
    runs,
    spec_of,
    threshold,
    value,
    verdict_of,
)

PAPER = {
    "title": "F",
    "seeds": 3,
    "evaluate": {"every": 1},
    "dataset": {"name": "fashion_mnist", "train": 60000},
    "partition": {"name": "iid", "clients": 10},
    "model": {"name": "resnet9", "width": 64},
    "local": {"epochs": 5, "batch": 16},
    "participation": {"clients": "all"},
    "rounds": 100,
    "algorithms": {
        "toy": {"lr": 0.1, "grid": {"gamma": [0.1, 0.5, 0.9]}},
        "arms": {"method": "toy", "lr": 0.1, "variants": {"fedavg": {"power": 0}, "taper": {"power": 1}}},
    },
}


def found(changes, quantity=OURS):
    config = changed(PAPER, changes)
    return [str(gap) for gap in gaps(config, PAPER, quantity)]


def short(needs, changes, quantity=OURS):
    config = changed(PAPER, changes)
    return [str(gap) for gap in shortfalls(needs, config, gaps(config, PAPER, quantity))]


def test_what_is_reduced_is_named():
    assert found({}) == []
    assert found({"rounds": 20, "dataset.train": 4000}) == ["dataset.train 4000 of 60000", "rounds 20 of 100"]
    assert found({"model.name": "lenet5", "rounds": 200}) == [
        "model.name lenet5 instead of resnet9",
        "rounds 200 instead of 100",
    ]
    assert found({"partition.clients": ...}) == ["partition.clients none instead of 10"]
    assert found({"seeds": 1, "evaluate.every": 9, "title": "G"}) == []
    assert evidence([]) == "published settings"
    assert evidence([Gap("rounds", 20, 100), Gap("width", 4, 64)]) == "reduced: rounds 20 of 100, width 4 of 64"


def test_only_the_settings_that_a_quantity_takes_count():
    fewer = {"algorithms.toy.grid.gamma": [0.5]}
    words = "algorithms.toy.grid.gamma [0.5] instead of [0.1, 0.5, 0.9]"
    assert found(fewer) == [words]
    assert found(fewer, {**OURS, "setting": "gamma=0.5"}) == []
    assert found(fewer, {**OURS, "setting": "gamma=0.9"}) == [words]
    assert found({"algorithms.toy.lr": 0.2}, {**OURS, "setting": "gamma=0.5"}) == [
        "algorithms.toy.lr 0.2 instead of 0.1"
    ]


def test_a_variant_is_compared_by_itself():
    other = {"algorithms.arms.variants.fedavg.power": 2}
    assert found(other, {**OURS, "algorithm": "taper"}) == []
    assert found(other, {**OURS, "algorithm": "fedavg"}) == ["algorithms.arms.variants.fedavg.power 2 instead of 0"]
    assert found({"algorithms.arms": ...}, {**OURS, "algorithm": "taper"}) == ["algorithms.arms none instead of there"]


@pytest.mark.parametrize(
    ("needs", "changes", "words"),
    [
        # the schedule 0.1/n after a fifth of its rounds
        ({"rounds": "reach"}, {"rounds": 20}, ["rounds 20 of 100"]),
        ({"rounds": "reach"}, {"rounds": 100}, []),
        ({"rounds": "reach"}, {"rounds": 200}, []),
        ({"rounds": "equal"}, {"rounds": 200}, ["rounds 200 instead of 100"]),
        # a network of width 4
        ({"rounds": "reach", "model": "equal"}, {"model.width": 4}, ["model.width 4 of 64"]),
        ("all", {"model.width": 4}, ["model.width 4 of 64"]),
        # 160 samples per device
        ({"dataset.train": "reach"}, {"dataset.train": 160}, ["dataset.train 160 of 60000"]),
        ({"dataset": "equal"}, {"dataset.train": 160}, ["dataset.train 160 of 60000"]),
        # 25 rounds
        ({"rounds": 50}, {"rounds": 25}, ["rounds 25 of 50"]),
        ({"rounds": 25}, {"rounds": 25}, []),
        ({"partition.clients": "reach"}, {"rounds": 25}, []),
        ({}, {"rounds": 1, "model.width": 1, "dataset.train": 1}, []),
        ({"participation.clients": 5}, {"rounds": 25}, []),  # all of them are enough
        ({"algorithms.toy.lr": 0.5}, {}, ["algorithms.toy.lr 0.1 of 0.5"]),
        ({"algorithms.other.lr": 0.5}, {}, []),  # of another run
        ({"model.depth": 3}, {}, ["model.depth none instead of 3"]),
        ({"model.width.inner": "equal"}, {"model.width": 4}, ["model.width 4 of 64"]),
    ],
)
def test_needs(needs, changes, words):
    assert short(needs, changes) == words


CASES = {
    "rounds": ({"rounds": 8}, {"rounds": "reach"}, "rounds 8 of 40", "rounds 40 (has 8), about 15 min"),
    "width": ({"model.bias": False}, {"model": "equal"}, "model.bias False instead of True", None),
    "samples": ({"dataset.samples": 2}, {"dataset.samples": "reach"}, "dataset.samples 2 of 6", None),
    "default": ({"local.steps": 1}, "all", "local.steps 1 of 5", "local.steps 5 (has 1), about 15 min"),
}


@pytest.mark.parametrize(("reduced", "needs", "words", "cost"), CASES.values(), ids=CASES)
def test_a_run_that_falls_short_judges_nothing_but_hints(reduced, needs, words, cost):
    tables = {"line": runs([159, 160, 161])}
    row = judge_all({"c": value(needs=needs)}, tables, reduced=reduced).ledger.iloc[0]
    assert row["verdict"] == "not tested"
    assert row["reason"].startswith(words)
    # t = 8·√3 with 2 df: p = 1 − t/√(2 + t²) = 0.0052
    assert row["hint"] == "points to reproduced: interval 157.5 to 162.5, p 0.0052"
    assert row["evidence"] == f"reduced: {words}"
    # three seeds of a minute, five times as long
    assert row["next"] == cost or (cost is None and row["next"].endswith("about 3 min"))
    whole = judge_all({"c": value(needs=needs)}, tables).ledger.iloc[0]
    assert (whole["verdict"], whole["evidence"], whole["hint"]) == ("reproduced", "published settings", "")


def test_a_claim_that_hangs_on_fewer_settings_is_judged_on_the_smaller_run():
    row = verdict_of(threshold(at_most=9, needs={"model": "equal"}), runs([1, 2, 3]), reduced={"rounds": 4})
    assert (row["verdict"], row["evidence"]) == ("reproduced", "reduced: rounds 4 of 40")
    wide = verdict_of(threshold(at_most=2, needs={"rounds": "reach"}), runs([1, 2, 3]), reduced={"rounds": 4})
    assert wide["hint"] == "points nowhere yet: interval -0.4841 to 4.484, p 1"
    few = verdict_of(threshold(at_most=2, needs={"rounds": "reach"}), runs([1]), reduced={"rounds": 4})
    assert (few["verdict"], few["hint"]) == ("not tested", "points nowhere yet: ours 1")


def test_a_round_that_was_not_reached_is_short_of_rounds():
    claim = threshold(ours={**OURS, "round": 30}, at_most=9, needs={"rounds": "reach"})
    row = verdict_of(claim, runs([1, 2, 3]), reduced={"rounds": 10})
    assert row["verdict"] == "not tested"
    assert row["reason"] == "rounds 10 of 40; round 30 is not in toy/line, whose last is 10"
    assert (row["hint"], row["next"]) == ("", "rounds 40 (has 10), about 12 min")


def test_the_row_says_which_archive_a_run_came_from():
    table = runs([159, 160, 161])
    about = [m | {"imported": {"archive_sha256": "ab" * 32}} for m in manifests({"line": table}, spec_of())]
    claims = Claims(
        "toy", {"c": Claim("c", {**COMMON, "id": "c", "family": "c", **value()}, {}, Located({}, "", ()))}, {}
    )
    paper = {"toy/line": experiment({"algorithms": ALGORITHMS}, "paper", "line")}
    row = judge(claims, {"line": table}, None, "paper", manifests=about, paper=paper).ledger.iloc[0]
    assert row["evidence"] == "published settings; imported from abababababab"


def test_a_run_without_a_manifest_judges_nothing():
    table = runs([159, 160, 161])
    claims = Claims("toy", {"c": Claim("c", {**COMMON, "id": "c", **value()}, {}, Located({}, "", ()))}, {})
    lost = judge(claims, {"line": table}, None, "demo", manifests=[], paper={}).ledger.iloc[0]
    assert (lost["verdict"], lost["hint"]) == ("not tested", "")
    assert lost["reason"] == "the settings of line, toy are not known: there is no manifest"
    row = judge_all({"c": value(ours={**OURS, "experiment": "ring"})}, {"line": table}).ledger.iloc[0]
    assert (row["verdict"], row["next"]) == ("not tested", "a run of ring")
