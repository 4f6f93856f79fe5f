"""Verdicts from made-up results: every verdict of every kind, and results that must stay without one."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.errors import UserError
from fedrepro.evidence.intervals import Sample
from fedrepro.evidence.verdicts import REPRODUCED, decide, holm, rule_ordering
from tests.unit.evidence.made_up import (
    OTHER,
    OURS,
    consistency,
    curves,
    grid,
    judge_all,
    normal,
    ordering,
    runs,
    threshold,
    trend,
    value,
    verdict_of,
)

PUBLISHED = pd.DataFrame(
    {
        "id": ["epochs", "none", "twice", "twice", "still", "one"],
        "value": [160.0, math.nan, 1.0, 2.0, 160.0, 160.0],
        "spread": [8.0, math.nan, math.nan, math.nan, 0.0, 8.0],
        "runs": [4, math.nan, math.nan, math.nan, 30, 1],
    }
)


# value


def test_value_reproduced_with_numbers_worked_by_hand():
    # mean 161; deviations −3, −1, 4: s = √((9 + 1 + 16)/2) = 3.6056; half-width 4.3027·3.6056/√3 = 8.957
    row = verdict_of(value(tolerance={"absolute": 10}), runs([158, 160, 165]))
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (pytest.approx(152.043, abs=1e-3), pytest.approx(169.957, abs=1e-3))
    assert (row["ours"], row["paper_says"]) == ("161 ± 3.6", "160")
    assert "mean 161, 95 % interval 152 to 170 over 3 seeds: inside 160 ± 10" in row["reason"]
    # the nearer edge decides: t = (170 − 161)/(3.6056/√3) = 4.3234, with 2 df: one-sided 0.02478
    assert row["p"] == pytest.approx(2 * 0.02478, abs=1e-4)
    assert verdict_of(value(tolerance={"absolute": 9}), runs([158, 160, 165]))["verdict"] == "undecided"


def test_value_at_the_very_edge_of_a_rounded_band_is_inside():
    # 0.1 + 0.2 > 0.3 in floating point.
    claim = value(published=0.1, tolerance={"absolute": 0.2})
    assert verdict_of(claim, runs([0.1 + 0.2] * 3))["verdict"] == "reproduced"


def test_value_relative_tolerance_is_of_the_published_size():
    claim = value(published=-100, tolerance={"relative": 0.05})
    assert verdict_of(claim, runs([-101, -100, -99]))["verdict"] == "reproduced"
    assert verdict_of(claim, runs([-107, -106, -107]))["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("values", "direction", "verdict", "words"),
    [
        ([200, 201, 202], {}, "not reproduced", "outside 160 ± 8"),
        ([100, 101, 102], {}, "not reproduced", "outside 160 ± 8"),
        ([200, 201, 202], {"above": 100}, "direction", "outside 160 ± 8, but above 100"),
        ([200, 201, 202], {"below": 300}, "direction", "but below 300"),
        ([200, 201, 202], {"above": 201}, "not reproduced", "outside"),
        ([160, 175, 200], {}, "undecided", "lies across the edge of 160 ± 8"),
        ([150, 160, 170], {}, "undecided", "lies across"),
        ([150, 160, 170], {"above": 100}, "undecided", "lies across"),
        ([159, 160, 161], {"above": 1000}, "reproduced", "inside"),
    ],
)
def test_value_verdicts(values, direction, verdict, words):
    claim = value(direction=direction) if direction else value()
    row = verdict_of(claim, runs(values))
    assert row["verdict"] == verdict
    assert words in row["reason"]


def test_a_printed_spread_widens_the_interval_and_gives_a_second_p():
    exact, printed = (
        verdict_of(value(published=ref), runs([158, 160, 163, 161]), published=PUBLISHED) for ref in (160, "epochs")
    )
    assert printed["paper_says"] == "160 ± 8 (4 runs)"
    assert exact["verdict"] == "reproduced"
    assert printed["verdict"] == "undecided"  # the printed mean alone is known to ± 3.18·8/√4 only
    assert (printed["ci_low"], printed["ci_high"]) == (exact["ci_low"], exact["ci_high"])
    assert "with the printed standard error 4" in printed["reason"]
    assert math.isnan(exact["p_printed"])
    assert printed["p_printed"] == pytest.approx(0.91, abs=0.02)


def test_a_printed_spread_of_zero_is_an_exact_mean():
    row = verdict_of(value(published="still"), runs([158, 160, 163, 161]), published=PUBLISHED)
    assert row["verdict"] == "reproduced"
    assert row["p_printed"] == pytest.approx(0.68, abs=0.02)
    assert "printed standard error" not in row["reason"]
    equal = verdict_of(value(published="still"), runs([160] * 4), published=PUBLISHED)
    assert (equal["verdict"], equal["p_printed"]) == ("reproduced", 1.0)
    assert verdict_of(value(published="still"), runs([161] * 4), published=PUBLISHED)["p_printed"] == 0.0


def test_the_spread_of_one_printed_run_is_not_that_of_its_mean():
    row = verdict_of(value(published="one"), runs([159, 160, 161]), published=PUBLISHED)
    assert row["verdict"] == "reproduced"
    assert math.isnan(row["p_printed"])


@pytest.mark.parametrize(
    ("name", "published", "words"),
    [
        ("epoch", PUBLISHED, "'epoch' is not in config/studies/toy/published.csv; did you mean 'epochs'?"),
        ("none", PUBLISHED, "has no value"),
        ("twice", PUBLISHED, "stands more than once"),
        ("epochs", None, "is not in config/studies/toy/published.csv"),
    ],
)
def test_published_id_that_cannot_be_used(name, published, words):
    row = verdict_of(value(published=name), runs([159, 160, 161]), published=published)
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


def test_a_transform_makes_the_interval_on_its_scale():
    # log 1, 2, 4 = 0, ln 2, 2 ln 2: geometric mean 2, half-width 4.3027·ln 2/√3 = 1.7219
    row = verdict_of(value(published=2, tolerance={"relative": 0.9}, transform="log"), runs([1, 2, 4]))
    assert row["ci_low"] == pytest.approx(2 / math.exp(1.7219), rel=1e-4)
    assert row["ci_high"] == pytest.approx(2 * math.exp(1.7219), rel=1e-4)
    assert "(log scale)" in row["reason"]
    by_metric = verdict_of(value(published=2, tolerance={"relative": 0.9}), runs([1, 2, 4]), transforms={"loss": "log"})
    assert by_metric["ci_low"] == row["ci_low"]


def test_a_number_on_the_edge_of_the_domain_keeps_the_plain_scale():
    claim = value(published=0.99, tolerance={"absolute": 0.05}, transform="logit")
    row = verdict_of(claim, runs([1.0, 0.99, 0.98]))
    assert row["verdict"] == "reproduced"
    assert "plain scale: the logit of a number is not finite" in row["reason"]
    assert 0 < verdict_of(claim, runs([0.999, 0.99, 0.98]))["ci_high"] < 1


# ordering


def test_ordering_is_paired_over_seeds():
    # The methods overlap widely, but in every seed toy is lower by exactly 0.5: only pairing shows it.
    row = verdict_of(ordering(), runs([1.0, 5.0, 9.0]), runs([1.5, 5.5, 9.5], "fedavg"))
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (0.5, 0.5)
    assert row["our_test"] == "loss: toy lower than fedavg by more than 0"
    assert row["ours"] == "toy 5 ± 4, fedavg 5.5 ± 4"


@pytest.mark.parametrize(
    ("keys", "ours", "other", "verdict", "words"),
    [
        ({"by": "higher"}, [3, 4, 5], [1, 2, 2], "reproduced", "above 0"),
        ({"by": "higher"}, [1, 2, 2], [3, 4, 5], "not reproduced", "reversed"),
        ({"by": "lower"}, [3, 4, 5], [1, 2, 2], "not reproduced", "reversed"),
        ({"by": "lower"}, [1, 2, 3], [1, 2, 3], "not reproduced", "no difference that matters, shown"),
        ({"by": "lower"}, [1, 2, 3], [2, 1, 4], "undecided", "lies across 0"),
        ({"by": "higher", "margin": {"absolute": 1}}, [3, 4, 5], [1, 2, 3], "reproduced", "above 0"),
        ({"by": "higher", "margin": {"absolute": 2}}, [3, 4, 5], [1, 2, 3], "not reproduced", "no difference that"),
        ({"by": "higher", "margin": {"relative": 0.5}}, [2.1, 2.2, 2.3], [2, 2.1, 2.2], "not reproduced", "no diff"),
        ({"by": "higher", "margin": {"absolute": 1}}, [3, 4, 5], [2.1, 3, 4.1], "reproduced", "above 0"),
        ({"by": "higher", "margin": {"absolute": 9}}, [5, 4, 9], [2, 9, 3], "undecided", "lies across 0"),
        (
            {"by": "higher", "published": 2.2, "tolerance": {"absolute": 0.3}},
            [3, 4, 5],
            [1, 2, 3],
            "reproduced",
            "its size is 2.2 ± 0.3",
        ),
        (
            {"by": "higher", "published": 20, "tolerance": {"relative": 0.1}},
            [3, 4, 5],
            [1, 2, 3],
            "direction",
            "its size is not shown to be 20 ± 2",
        ),
        (
            {"by": "higher", "published": -2, "tolerance": {"absolute": 0.3}},
            [1, 2, 3],
            [3, 4, 5],
            "not reproduced",
            "reversed",
        ),
    ],
)
def test_ordering_verdicts(keys, ours, other, verdict, words):
    row = verdict_of(ordering(**keys), runs(ours), runs(other, "fedavg"))
    assert row["verdict"] == verdict
    assert words in row["reason"]


def test_ordering_tie_up_to_rounding_is_no_difference():
    row = verdict_of(ordering(by="higher"), runs([0.1 + 0.2] * 3), runs([0.3] * 3, "fedavg"))
    assert row["verdict"] == "not reproduced"
    assert "no difference that matters" in row["reason"]


def test_ordering_of_ratios():
    # Lower by 10 % in every seed, whatever the size: the log ratio has no spread, and a tenth is the margin itself.
    tables = runs([0.9, 9.0, 90.0]), runs([1.0, 10.0, 100.0], "fedavg")
    row = verdict_of(ordering(transform="log"), *tables)
    assert (row["verdict"], row["ci_low"], row["ci_high"]) == ("reproduced", pytest.approx(0.1), pytest.approx(0.1))
    assert "advantage as a share" in row["reason"]
    small = verdict_of(ordering(transform="log", margin={"relative": 0.1}), *tables)
    assert small["verdict"] == "not reproduced"
    assert verdict_of(ordering(transform="log", margin={"relative": 0.09}), *tables)["verdict"] == "reproduced"
    higher = ordering(better=OTHER, worse=OURS, by="higher", transform="log", margin={"relative": 0.12})
    assert verdict_of(higher, *tables)["verdict"] == "not reproduced"  # 1/0.9 − 1 = 0.111
    assert verdict_of(ordering(), *tables)["verdict"] == "undecided"


def test_ordering_uses_common_seeds_only():
    late = runs([1, 1, 1, 1], "fedavg").assign(seed=[1, 2, 3, 4])
    row = verdict_of(ordering(by="higher"), runs([-99, 2, 2, 2]), late)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 3)
    apart = runs([1, 1, 1], "fedavg").assign(seed=[7, 8, 9])
    row = verdict_of(ordering(by="higher"), runs([2, 2, 2]), apart)
    assert (row["verdict"], row["seeds"]) == ("not tested", 0)
    assert "no seed is left" in row["reason"]


def test_ordering_of_one_algorithm_is_labelled_by_what_differs():
    table = grid([[1, 2], [1, 2], [1, 2]], [0.1, 0.5])
    claim = ordering(better={**OURS, "setting": "gamma=0.1"}, worse={**OURS, "setting": "gamma=0.5"}, needs={})
    row = verdict_of(claim, table)
    assert row["verdict"] == "reproduced"
    assert row["our_test"] == "loss: toy (gamma=0.1) lower than toy (gamma=0.5) by more than 0"


# threshold


@pytest.mark.parametrize(
    ("keys", "values", "verdict"),
    [
        ({"at_most": 5}, [1, 2, 3], "reproduced"),
        ({"at_most": 3}, [1, 2, 3], "undecided"),
        ({"at_most": -1}, [1, 2, 3], "not reproduced"),
        ({"at_least": -1}, [1, 2, 3], "reproduced"),
        ({"at_least": 2}, [1, 2, 3], "undecided"),
        ({"at_least": 5}, [1, 2, 3], "not reproduced"),
        ({"at_most": 1}, [1, 1, 1], "reproduced"),
        ({"at_least": 1}, [1, 1, 1], "reproduced"),
        ({"at_most": 1}, [1.1, 1.1, 1.1], "not reproduced"),
        ({"at_most": 1, "margin": {"absolute": 0.2}}, [1.09, 1.1, 1.11], "reproduced"),
        ({"at_most": 1, "margin": {"relative": 0.2}}, [1.09, 1.1, 1.11], "reproduced"),
        ({"at_most": 1, "margin": {"absolute": 0.05}}, [1.09, 1.1, 1.11], "not reproduced"),
        ({"at_most": "epochs"}, [150, 151, 152], "reproduced"),
        ({"at_most": 5, "transform": "log"}, [1, 1.1, 1.2], "reproduced"),
        ({"at_least": 0, "transform": "log"}, [1, 1.1, 1.2], "reproduced"),
        ({"at_most": 3, "every_seed": True}, [1, 2, 3], "reproduced"),
        ({"at_most": 2.9, "every_seed": True}, [1, 2, 3], "not reproduced"),
        ({"at_least": 1, "every_seed": True}, [1], "undecided"),
        ({"at_least": 2, "every_seed": True}, [1], "undecided"),
        ({"at_least": 2, "every_seed": True}, [1, 5, 9], "not reproduced"),
        ({"at_most": 3, "every_seed": True}, [1, None, 2], "not reproduced"),
        ({"at_most": 3, "every_seed": True, "transform": "log"}, [1, 2, 3], "reproduced"),
    ],
)
def test_threshold_verdicts(keys, values, verdict):
    assert verdict_of(threshold(**keys), runs(values), published=PUBLISHED)["verdict"] == verdict


def test_threshold_texts():
    row = verdict_of(threshold(at_most=1, margin={"absolute": 0.2}), runs([1.09, 1.1, 1.11]))
    assert "at the limit" in row["reason"]
    assert row["our_test"] == "loss of toy at most 1 (within 0.2 of it counts)"
    row = verdict_of(threshold(at_most=2.5, every_seed=True), runs([1, 2, 3]))
    assert "at most 2.5: fails in 1 of 3 seeds, worst 3" in row["reason"]
    assert row["our_test"] == "loss of toy at most 2.5 in every seed"


def test_threshold_against_a_quantity_is_paired():
    bound = {**OURS, "metric": "bound"}
    # Overall 1 … 9 is far above the smallest bound, but below its own bound in every seed.
    tables = runs([1, 5, 9]), runs([1.5, 5.5, 9.5], metric="bound")
    row = verdict_of(threshold(at_most=bound), *tables)
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (-0.5, -0.5)
    assert row["our_test"] == "loss of toy at most bound"
    assert row["reason"].startswith("ours − limit: mean -0.5")
    assert verdict_of(threshold(at_least=bound), *tables)["verdict"] == "not reproduced"
    assert verdict_of(threshold(at_least=bound, margin={"relative": 0.2}), *tables)["verdict"] == "reproduced"
    assert verdict_of(threshold(at_most=bound, every_seed=True), *tables)["verdict"] == "reproduced"


def test_every_seed_needs_a_value_in_every_seed():
    bound = {**OURS, "metric": "bound"}
    tables = runs([1, 5, 9]), runs([2, 6], metric="bound")
    row = verdict_of(threshold(at_most=bound, every_seed=True), *tables)
    assert row["verdict"] == "undecided"
    assert "holds in 2 seeds, but 3 were run" in row["reason"]
    assert "1 of 3 seeds of toy (bound) without a value" in row["reason"]


# trend


@pytest.mark.parametrize(
    ("direction", "margin", "per_seed", "verdict", "words"),
    [
        ("falling", 0, [[4, 3, 2, 1]] * 3, "reproduced", "as claimed"),
        ("rising", 0, [[1, 2, 3, 4]] * 3, "reproduced", "as claimed"),
        ("rising", 0.5, [[1, 2, 3, 4]] * 3, "reproduced", "as claimed by more than 0.5"),
        ("rising", 0, [[4, 3, 2, 1]] * 3, "not reproduced", "reversed"),
        ("rising", 0, [[1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4]], "undecided", "lies across 0"),
        ("falling", 0, [[5, 5, 5, 5]] * 3, "not reproduced", "no trend that matters"),
        ("rising", 0.9, [[2, 1, 3, 4]] * 3, "not reproduced", "no trend that matters"),
        ("rising", 0.9, [[1, 2, 3, 4], [2, 1, 3, 4], [1, 2, 3, 4]], "undecided", "lies across 0.9"),
        ("falling", 0.9, [[4, 3, 2, 1], [4, 3, 1, 2], [4, 3, 2, 1]], "undecided", "lies across -0.9"),
    ],
)
def test_trend_verdicts_along_rounds(direction, margin, per_seed, verdict, words):
    row = verdict_of(trend(direction=direction, margin=margin), curves(per_seed, [0, 1, 2, 3]))
    assert row["verdict"] == verdict
    assert words in row["reason"]
    assert {"falling": "falls", "rising": "rises"}[direction] + " with round" in row["our_test"]


def test_trend_rank_correlation_worked_by_hand():
    # Ranks 1 2 3 4 against 2 1 3 4: ρ = 1 − 6·(1 + 1) / (4·15) = 0.8. Tied 1 1 2: ranks 1.5 1.5 3: √3 / 2.
    row = verdict_of(trend(direction="rising"), curves([[2, 1, 3, 4]] * 3, [0, 1, 2, 3]))
    assert row["ci_low"] == pytest.approx(0.8)
    assert row["ours"] == "rank correlation 0.8 ± 0"
    tied = verdict_of(trend(direction="rising"), curves([[1, 1, 2]] * 3, [0, 1, 2]))
    assert tied["ci_high"] == pytest.approx(math.sqrt(3) / 2)
    falling = verdict_of(trend(direction="falling"), curves([[3, 4, 2, 1]] * 3, [0, 1, 2, 3]))
    assert falling["ci_low"] == pytest.approx(-0.8)


def test_trend_along_a_setting_orders_numbers_not_texts():
    # As texts, 10 would come before 2 and 5.
    table = grid([[1, 2, 3]] * 3, ["2", "5", "10"])
    row = verdict_of(trend("gamma", "rising") | {"needs": {}}, table)
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["seeds"]) == (1.0, 3)


def test_trend_along_a_setting_takes_the_last_round():
    early = grid([[9, 5, 1]] * 3, [1, 2, 3], round=0)
    assert verdict_of(trend("gamma", "rising"), early, grid([[1, 2, 3]] * 3, [1, 2, 3]))["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("along", "table", "words"),
    [
        ("gama", grid([[1, 2, 3]] * 3, [1, 2, 3]), "has the key 'gama'; did you mean 'gamma'?"),
        ("gamma", grid([[1, 2, 3]] * 3, ["a", "b", "c"]), "'gamma' in toy/line is not a number"),
        ("gamma", grid([[1, 2]] * 3, [1, 2]), "needs 3 values of 'gamma'"),
        ("gamma", grid([[1, 2, 3]] * 3, ["1,steps=1", "2,steps=1", "3,steps=2"]), "must say which setting"),
        ("round", grid([[1, 2, 3]] * 3, [1, 2, 3]), "must say which setting"),
    ],
)
def test_trend_that_cannot_be_decided(along, table, words):
    row = verdict_of(trend(along, "rising"), table)
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


# consistency


def test_consistency_of_printed_numbers():
    row = verdict_of(consistency("100 * (a - b) / a", 24.9, 0.1, a=4.0, b=3.0))
    assert (row["verdict"], row["ours"], row["paper_says"]) == ("reproduced", "25", "24.9")
    assert (row["data"], row["seeds"], row["evidence"]) == ("published", 0, "printed numbers")
    assert row["our_test"] == "100 * (a - b) / a = 24.9 ± 0.1"
    assert math.isnan(row["ci_low"])


def test_consistency_contradicted_by_the_source():
    row = verdict_of(consistency("100 * (a - b) / a", 24.8, 0.1, a=4.0, b=3.0))
    assert row["verdict"] == "contradicted by the source"
    assert "gives 25, stated is 24.8, tolerance 0.1" in row["reason"]


def test_consistency_by_published_id():
    claim = consistency("a / 4", "epochs", a=640)
    assert verdict_of(claim, published=PUBLISHED)["verdict"] == "reproduced"
    assert verdict_of(consistency("a / 4", 40, a="epochs"), published=PUBLISHED)["verdict"] == "reproduced"
    row = verdict_of(consistency("a", 40, a="epoch"), published=PUBLISHED)
    assert row["verdict"] == "not tested"
    assert "did you mean 'epochs'" in row["reason"]


def test_consistency_with_measured_numbers_blames_us_not_the_paper():
    agree = verdict_of(consistency("2 * a", 4, a=OURS), runs([1, 2, 3]))
    assert (agree["verdict"], agree["seeds"], agree["data"]) == ("reproduced", 3, "synthetic")
    assert verdict_of(consistency("2 * a", 5, a=OURS), runs([1, 2, 3]))["verdict"] == "not reproduced"
    for stated in (4, 5):
        few = verdict_of(consistency("2 * a", stated, a=OURS), runs([1, 3]))
        assert (few["verdict"], few["seeds"]) == ("undecided", 2)
    lost = verdict_of(consistency("2 * a", 5, a=OURS), runs([None, None]))
    assert lost["verdict"] == "not tested"
    assert "2 of 2 runs diverged" in lost["reason"]


def test_an_expression_without_a_value_is_not_tested():
    row = verdict_of(consistency("1 / (a - a)", a=1))
    assert row["verdict"] == "not tested"
    assert "has no value" in row["reason"]


# What holds for every kind

FOUR = [value(), ordering(), threshold(at_most=1000), trend()]


@pytest.mark.parametrize("claim", FOUR, ids=lambda claim: claim["kind"])
@pytest.mark.parametrize("seeds", [1, 2])
def test_one_or_two_seeds_decide_nothing(claim, seeds):
    def tables(n):
        sides = curves([[163, 162, 161]] * n, [0, 1, 2]), curves([[183, 182, 181]] * n, [0, 1, 2], algorithm="fedavg")
        return sides

    row = verdict_of(claim, *tables(seeds))
    assert (row["verdict"], row["seeds"]) == ("undecided", seeds)
    assert f"{seeds} seed{'s' * (seeds > 1)}: a verdict needs 3" in row["reason"]
    assert math.isnan(row["ci_low"]) == (seeds == 1)
    assert math.isnan(row["p"])
    # The very same numbers in a third seed decide it.
    assert verdict_of(claim, *tables(3))["verdict"] == "reproduced"


BORROW = {"borrow": {"experiment": "small"}}


@pytest.mark.parametrize(
    ("ours", "lent", "verdict", "words"),
    [
        ([160], normal(500, 1, 6), "reproduced", "spread 1 borrowed from 6 seeds of small"),
        ([160, 161], normal(500, 1, 6), "reproduced", "borrowed"),
        ([200], normal(500, 1, 6), "not reproduced", "borrowed"),
        ([160], normal(500, 9, 6), "undecided", "borrowed"),
        ([160], normal(500, 1, 4), "undecided", "no spread to borrow: 4 seeds of small, 5 are needed"),
        ([160], [None] * 6, "undecided", "no spread to borrow: 0 seeds"),
        ([159, 160, 161], normal(500, 99, 6), "reproduced", "inside"),
    ],
)
def test_a_borrowed_spread(ours, lent, verdict, words):
    tables = {"line": runs(ours), "small": runs(lent)}
    row = judge_all({"c": value() | BORROW}, tables).ledger.iloc[0]
    assert (row["verdict"], row["seeds"]) == (verdict, len(ours))
    assert words in row["reason"]


def test_one_seed_with_a_borrowed_spread_has_the_interval_x_plus_minus_ts():
    tables = {"line": runs([160]), "small": runs(normal(7, 2, 6))}
    row = judge_all({"c": value() | BORROW}, tables).ledger.iloc[0]
    assert row["ci_high"] == pytest.approx(160 + 2.5706 * 2, abs=1e-3)  # t(0.975, 5)


def test_an_ordering_borrows_the_spread_of_the_difference():
    small = pd.concat([runs([1, 2, 3, 4, 5]), runs([2, 3, 4, 5, 6.5], "fedavg")])
    tables = {"line": pd.concat([runs([10]), runs([12], "fedavg")]), "small": small}
    row = judge_all({"c": ordering() | BORROW}, tables).ledger.iloc[0]
    assert row["verdict"] == "reproduced"
    missing = {"line": tables["line"]}
    assert judge_all({"c": ordering() | BORROW}, missing).ledger.iloc[0]["verdict"] == "undecided"


def test_an_ordering_of_two_experiments_borrows_from_two():
    claim = ordering()
    claim["worse"] = {**claim["worse"], "experiment": "other"}
    claim["borrow"] = {"experiment": "small", "worse": "small_other"}
    tables = {"line": runs([10]), "other": runs([12], "fedavg"), "small": runs([1, 2, 3, 4, 5])}
    tables["small_other"] = runs([2, 3, 4, 5, 6.5], "fedavg")  # the differences are 1, 1, 1, 1 and 1.5
    row = judge_all({"c": claim}, tables).ledger.iloc[0]
    assert row["verdict"] == "reproduced"
    assert "spread 0.22 borrowed from 5 seeds of small" in row["reason"]


def test_one_seed_that_diverged_is_undecided():
    row = verdict_of(value(), runs([None]))
    assert row["verdict"] == "undecided"
    assert "1 of 1 runs diverged" in row["reason"]


def test_diverged_runs_are_left_out_and_counted():
    row = verdict_of(value(), runs([159, 160, 161, None]))
    assert (row["verdict"], row["seeds"], row["ours"]) == ("reproduced", 3, "160 ± 1")
    assert "1 of 4 runs diverged (25 %), median of the rest 160" in row["reason"]


def test_a_flagged_run_is_left_out_although_its_last_value_is_finite():
    table = runs([159, 160, 161, 1e9])
    table.loc[3, "diverged"] = True
    row = verdict_of(value(), table)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_non_finite_value_without_the_flag_is_a_diverged_run(bad):
    row = verdict_of(value(), runs([159, 160, 161, bad]))
    assert (row["verdict"], row["seeds"]) == ("reproduced", 3)
    assert "1 of 4 runs diverged" in row["reason"]


@pytest.mark.parametrize(("diverged", "verdict"), [(3, "reproduced"), (4, "not reproduced"), (6, "not reproduced")])
def test_more_than_half_diverged_is_not_reproduced(diverged, verdict):
    row = verdict_of(value(), runs([None] * diverged + [160] * (6 - diverged)))
    assert row["verdict"] == verdict
    assert f"{diverged} of 6 runs diverged" in row["reason"]
    assert ("more than half" in row["reason"]) == (verdict == "not reproduced")


def test_a_run_that_diverged_before_the_metric_was_written_counts():
    before = runs([None, None], metric="train_loss").assign(seed=[3, 4])
    row = verdict_of(value(), runs([159, 160, 161]), before)
    assert row["verdict"] == "reproduced"
    assert "2 of 5 runs diverged" in row["reason"]


def test_all_runs_diverged_before_the_metric_was_written():
    row = verdict_of(value(), runs([None] * 3, metric="train_loss"))
    assert (row["verdict"], row["seeds"]) == ("not reproduced", 0)
    assert "3 of 3 runs diverged" in row["reason"]


def test_a_flag_on_any_row_of_a_run_counts_for_the_run():
    flag = runs([None], metric="train_loss").assign(seed=3)
    row = verdict_of(value(), runs([159, 160, 161, 1e9]), flag)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 3)
    assert "1 of 4 runs diverged" in row["reason"]


def test_divergence_of_the_other_method_is_no_evidence_against_the_claim():
    row = verdict_of(ordering(), runs([1, 2, 3]), runs([None] * 3, "fedavg"))
    assert row["verdict"] == "not tested"
    assert "3 of 3 runs of fedavg diverged" in row["reason"]
    row = verdict_of(ordering(), runs([None, None, 3]), runs([4, 5, 6], "fedavg"))
    assert row["verdict"] == "not reproduced"
    assert "2 of 3 runs of toy diverged" in row["reason"]


def test_diverged_settings_leave_the_trend():
    # gamma = 9 diverges in every seed; its flat start must not spoil the order of the rest.
    table = grid([[1, 2, 3, None]] * 3, [1, 2, 3, 9])
    row = verdict_of(trend("gamma", "rising"), table)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 3)
    assert "3 of 12 runs diverged" in row["reason"]
    table = grid([[1, None, None, None]] * 3, [1, 2, 3, 9])
    assert verdict_of(trend("gamma", "rising"), table)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"experiment": "lien"}, "toy/lien was not run; did you mean 'toy/line'?"),
        ({"experiment": "xyz"}, "toy/xyz was not run"),
        ({"algorithm": "toyy"}, "algorithm 'toyy' is not in toy/line; did you mean 'toy'?"),
        ({"metric": "los"}, "metric 'los' is not in toy/line; did you mean 'loss'?"),
        ({"setting": "gamma=0.2"}, "setting 'gamma=0.2' is not in toy/line"),
        ({"split": "train"}, "split 'train' is not in toy/line"),
        ({"group": "women"}, "group 'women' is not in toy/line"),
        ({"client": 4}, "client '4' is not in toy/line"),
        ({"client": "all"}, "client 'all' is not in toy/line"),
        ({"round": 99}, "round 99 is not in toy/line, whose last is 10"),
    ],
)
@pytest.mark.parametrize("kind", ["value", "ordering", "threshold", "consistency"])
def test_what_is_missing_is_named(kind, keys, words):
    quantity = {**OURS, **keys}
    claim = {
        "value": value(ours=quantity),
        "ordering": ordering(better=OTHER, worse=quantity),
        "threshold": threshold(ours=OURS, at_most=quantity),
        "consistency": consistency("a", 1, a=quantity),
    }[kind]
    row = verdict_of(claim, runs([160, 161, 162]), runs([1, 2, 3], "fedavg"))
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


def test_unknown_scale_is_an_error():
    with pytest.raises(UserError, match="did you mean 'smoke'"):
        verdict_of(value(), runs([160, 160]), scale="smok")


STAND_IN = [
    (value(), "points to reproduced: interval "),
    (value(published=9000), "points to not reproduced: interval "),
    (value(published=9000, direction={"above": 0}), "points to direction: interval "),
    (ordering(), "points to reproduced: interval "),
    (ordering(by="higher"), "points to not reproduced: interval "),
    (threshold(at_most=1000, every_seed=True), "points to reproduced: ours 161"),
    (trend(direction="rising"), "points to not reproduced: interval "),
    (consistency("a", 161, a=OURS), "points to reproduced: ours 161"),
]


@pytest.mark.parametrize(("claim", "hint"), STAND_IN)
@pytest.mark.parametrize("kind", ["standin", "synthetic"])
def test_a_stand_in_judges_nothing_that_was_measured_on_real_data(claim, hint, kind):
    tables = (
        curves([[163, 162, 161]] * 3, [0, 1, 2]),
        curves([[183, 182, 181]] * 3, [0, 1, 2], algorithm="fedavg"),
    )
    claim = {**claim, "measured_on": "real"}
    row = verdict_of(claim, *tables, data=kind)
    assert (row["verdict"], row["data"]) == ("not tested", kind)
    assert f"{kind} data in place of real data" in row["reason"]
    assert row["hint"].startswith(hint)
    assert row["next"] == f"real data, about {'3' if claim['kind'] != 'ordering' else '6'} min"
    real = verdict_of(claim, *tables, data="real")
    assert (real["verdict"], real["hint"]) == (hint.split(":")[0].removeprefix("points to "), "")


def test_one_stand_in_among_real_data_makes_the_claim_a_stand_in():
    tables = runs([1, 2, 3], data="real"), runs([3, 4, 5], "fedavg", data="standin")
    row = verdict_of(ordering(measured_on="real"), *tables)
    assert (row["verdict"], row["data"]) == ("not tested", "standin")


def test_consistency_of_measured_numbers_is_about_real_data_unless_it_says_so():
    claims = {"c": consistency("a", 1, a=OURS) | {"measured_on": "real"}, "d": consistency("a", 1, a=OURS)}
    rows = judge_all(claims, {"line": runs([1, 1, 1])}).ledger
    assert rows["verdict"].tolist() == ["not tested", "reproduced"]


def test_printed_numbers_do_not_depend_on_our_data():
    row = verdict_of(consistency() | {"measured_on": "real"}, runs([1], data="standin"))
    assert (row["verdict"], row["data"]) == ("reproduced", "published")


# Families


def test_holm_by_hand():
    # sorted 0.01, 0.02, 0.04: 3·0.01, max(0.03, 2·0.02), max(0.04, 0.04)
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_without_a_true_difference_few_claims_are_reproduced():
    """Families of ten claims on noise: 2.5 % per claim by itself, 5 % of the families have one after Holm."""
    rng, families, claims = np.random.default_rng(5), 400, 10
    alone, any_left = 0, 0
    for _ in range(families):
        found = [decide(Sample.of(x), rule_ordering(0.0)) for x in rng.normal(size=(claims, 5))]
        corrected = holm([one.p for one in found])
        left = [one.verdict == REPRODUCED and p <= 0.05 for one, p in zip(found, corrected, strict=True)]
        alone += sum(one.verdict == REPRODUCED for one in found)
        any_left += any(left)
    error = 3 * math.sqrt(0.025 * 0.975 / (families * claims))
    assert 0.025 - error <= alone / (families * claims) <= 0.025 + error
    assert any_left / families <= 0.05


@pytest.mark.parametrize("margin", [0.2, 2.0])
def test_a_margin_does_not_make_noise_a_difference(margin):
    rng = np.random.default_rng(6)
    found = [decide(Sample.of(x), rule_ordering(margin)).verdict for x in rng.normal(size=(2000, 5))]
    assert found.count(REPRODUCED) / 2000 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 2000)
