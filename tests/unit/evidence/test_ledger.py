"""Verdicts from made-up results: every verdict of every kind, and results that must stay without one."""

from __future__ import annotations

import copy
import io
import math
import subprocess
import sys

import jsonschema
import numpy as np
import pandas as pd
import pytest
import yaml

from fedrepro.core.schemas import SCHEMAS
from fedrepro.errors import UserError
from fedrepro.evidence import claim_files as arithmetic
from fedrepro.evidence import intervals, ledger, quantities
from fedrepro.evidence.claim_files import load_claims, quantities_of

OURS = {"experiment": "line", "algorithm": "toy", "metric": "loss"}
OTHER = {**OURS, "algorithm": "fedavg"}
COMMON = {"id": "c", "source": "Fig. 1", "statement": "It is so.", "measured_on": "synthetic"}


def runs(values, algorithm="toy", **columns) -> pd.DataFrame:
    """A tidy table with one row per seed; a value that is None is a diverged run."""
    table = pd.DataFrame(
        {
            "experiment": "toy/line",
            "algorithm": algorithm,
            "setting": "",
            "seed": range(len(values)),
            "round": 10,
            "step": 0,
            "client": -1,
            "group": "",
            "split": "test",
            "metric": "loss",
            "value": [math.nan if value is None else float(value) for value in values],
            "data": "synthetic",
            "diverged": [value is None for value in values],
        }
    )
    return table.assign(**columns)


def curves(per_seed, positions, **columns) -> pd.DataFrame:
    """A tidy table with one row per seed and round; `per_seed` holds one list of values per seed."""
    parts = [runs([own[i] for own in per_seed], **({"round": at} | columns)) for i, at in enumerate(positions)]
    return pd.concat(parts, ignore_index=True)


def grid(per_seed, gammas, **columns) -> pd.DataFrame:
    """As `curves`, with a setting gamma in place of the rounds."""
    parts = [
        runs([own[i] for own in per_seed], **({"setting": f"gamma={gamma}"} | columns))
        for i, gamma in enumerate(gammas)
    ]
    return pd.concat(parts, ignore_index=True)


def verdict_of(claim, *tables, published=None, scale="demo", **columns) -> pd.Series:
    """The only row of the ledger of one claim over one table, with checks that hold for every claim."""
    table = pd.concat(tables, ignore_index=True).assign(**columns) if tables else None
    claims = {"study": "toy", "claims": [{**COMMON, **claim}]}
    result = ledger.judge(claims, {} if table is None else {"toy/line": table}, published, scale)
    assert list(result.columns) == ledger.COLUMNS
    assert len(result) == 1
    row = result.iloc[0]
    assert row["verdict"] in ledger.VERDICTS
    assert row["reason"]
    assert row["claim"] == "toy/c"
    return row


def value(**keys):
    return {"kind": "value", "ours": OURS, "published": 160, "tolerance": {"absolute": 8}} | keys


def ordering(**keys):
    return {"kind": "ordering", "better": OURS, "worse": OTHER, "by": "lower"} | keys


def threshold(**keys):
    return {"kind": "threshold", "ours": OURS} | keys


def trend(along="round", direction="falling", **keys):
    return {"kind": "trend", "ours": {**OURS, "along": along, **keys}, "direction": direction}


def consistency(expression="a + b", stated=3, tolerance=0, **numbers):
    numbers = numbers or {"a": 1, "b": 2}
    return {
        "kind": "consistency",
        "expression": expression,
        "numbers": numbers,
        "stated": stated,
        "tolerance": {"absolute": tolerance},
    }


# The columns and the order


def test_columns_and_verdicts_are_those_of_the_contract():
    names = "claim study source kind statement published ours ci_low ci_high verdict reason data scale seeds"
    assert " ".join(ledger.COLUMNS) == names
    assert ledger.VERDICTS == (
        "reproduced",
        "direction",
        "not reproduced",
        "contradicted by the source",
        "not tested",
    )


def test_every_claim_has_a_row_in_file_order():
    claims = [
        {**COMMON, **value(), "id": "z"},
        {**COMMON, **value(ours={**OURS, "metric": "nothing"}), "id": "a"},
        {**COMMON, **consistency(), "id": "m"},
    ]
    result = ledger.judge({"study": "toy", "claims": claims}, {"toy/line": runs([160, 160])}, None, "smoke")
    assert result["claim"].tolist() == ["toy/z", "toy/a", "toy/m"]
    assert result["verdict"].tolist() == ["reproduced", "not tested", "reproduced"]


def test_a_row_carries_source_statement_scale_data_seeds_and_note():
    row = verdict_of(value(note="Our grid is coarser."), runs([160, 161, 162]))
    assert (row["source"], row["statement"], row["study"], row["scale"]) == (
        "Fig. 1",
        "It is so.",
        "toy",
        "demo",
    )
    assert (row["data"], row["seeds"], row["kind"]) == ("synthetic", 3, "value")
    assert row["reason"].endswith("; Our grid is coarser.")


# value


def test_value_reproduced_with_numbers_worked_by_hand():
    # (1/3)³ = 3.7 % of the draws take the minimum three times: the 2.5 % quantile is the minimum itself.
    row = verdict_of(value(), runs([158, 160, 165]))
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (158.0, 165.0)
    # mean 161; deviations -3, -1, 4: sqrt((9 + 1 + 16) / 2) = 3.6
    assert row["ours"] == "161 ± 3.6"
    assert row["published"] == "160"
    assert "mean 161, 95 % interval 158 to 165 over 3 seeds, within 160 ± 8" in row["reason"]


def test_value_at_the_very_edge_of_a_rounded_band_is_inside():
    # 0.1 + 0.2 > 0.3 in floating point.
    claim = value(published=0.1, tolerance={"absolute": 0.2})
    assert verdict_of(claim, runs([0.1 + 0.2, 0.1 + 0.2]))["verdict"] == "reproduced"


def test_value_relative_tolerance_is_of_the_published_size():
    claim = value(published=-100, tolerance={"relative": 0.05})
    assert verdict_of(claim, runs([-104, -96]))["verdict"] == "reproduced"
    assert verdict_of(claim, runs([-107, -106]))["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("values", "direction", "verdict", "words"),
    [
        ([200, 201, 202], {}, "not reproduced", "outside 160 ± 8"),
        ([100, 101, 102], {}, "not reproduced", "outside 160 ± 8"),
        ([200, 201, 202], {"above": 100}, "direction", "but above 100"),
        ([200, 201, 202], {"below": 300}, "direction", "but below 300"),
        ([200, 201, 202], {"above": 201}, "not reproduced", "outside"),
        ([160, 175, 200], {}, "not reproduced", "mean is outside"),
        ([150, 160, 170], {}, "not tested", "undecided"),
        ([150, 160, 170], {"above": 100}, "direction", "but above 100"),
        ([159, 160, 161], {"above": 1000}, "reproduced", "within"),
    ],
)
def test_value_verdicts(values, direction, verdict, words):
    claim = value(direction=direction) if direction else value()
    row = verdict_of(claim, runs(values))
    assert row["verdict"] == verdict
    assert words in row["reason"]


PUBLISHED = pd.DataFrame(
    {
        "id": ["epochs", "none", "twice", "twice"],
        "value": [160.0, math.nan, 1.0, 2.0],
        "spread": [8.0, math.nan, math.nan, math.nan],
    }
)


def test_published_id_is_looked_up_with_its_spread():
    claim = value(published_id="epochs")
    del claim["published"]
    row = verdict_of(claim, runs([159, 161]), published=PUBLISHED)
    assert (row["verdict"], row["published"]) == ("reproduced", "160 ± 8")


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
    claim = value(published_id=name)
    del claim["published"]
    row = verdict_of(claim, runs([159, 161]), published=published)
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


# ordering


def test_ordering_is_paired_over_seeds():
    # The methods overlap widely, but in every seed toy is lower by exactly 0.5: only pairing shows it.
    row = verdict_of(ordering(), runs([1.0, 5.0, 9.0]), runs([1.5, 5.5, 9.5], "fedavg"))
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (0.5, 0.5)
    assert row["published"] == "toy < fedavg"
    assert row["ours"] == "toy 5 ± 4, fedavg 5.5 ± 4"


@pytest.mark.parametrize(
    ("keys", "ours", "other", "verdict", "words"),
    [
        ({"by": "higher"}, [3, 4, 5], [1, 2, 2], "reproduced", "above 0"),
        ({"by": "higher"}, [1, 2, 2], [3, 4, 5], "not reproduced", "reversed"),
        ({"by": "lower"}, [3, 4, 5], [1, 2, 2], "not reproduced", "reversed"),
        ({"by": "lower"}, [1, 2, 3], [1, 2, 3], "not reproduced", "no difference seen"),
        ({"by": "lower"}, [1, 2, 3], [2, 1, 4], "not reproduced", "no difference seen"),
        ({"by": "higher", "margin": 1}, [3, 4, 5], [1, 2, 3], "reproduced", "above 1"),
        ({"by": "higher", "margin": 2}, [3, 4, 5], [1, 2, 3], "not reproduced", "not above the margin 2"),
        (
            {"by": "higher", "published": 2.2, "tolerance": {"absolute": 0.3}},
            [3, 4],
            [1, 2],
            "reproduced",
            "within 2.2 ± 0.3",
        ),
        (
            {"by": "higher", "published": 20, "tolerance": {"relative": 0.1}},
            [3, 4],
            [1, 2],
            "direction",
            "not within 20 ± 2",
        ),
        (
            {"by": "higher", "published": -2, "tolerance": {"absolute": 0.3}},
            [1, 2],
            [3, 4],
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
    assert "no difference seen" in row["reason"]


def test_ordering_uses_common_seeds_only():
    late = runs([1, 1, 1], "fedavg").assign(seed=[1, 2, 3])
    row = verdict_of(ordering(by="higher"), runs([-99, 2, 2]), late)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 2)
    apart = runs([1, 1, 1], "fedavg").assign(seed=[7, 8, 9])
    row = verdict_of(ordering(by="higher"), runs([2, 2, 2]), apart)
    assert (row["verdict"], row["seeds"]) == ("not tested", 0)
    assert "no seed is left" in row["reason"]


def test_ordering_of_one_algorithm_is_labelled_by_what_differs():
    table = grid([[1, 2], [1, 2]], [0.1, 0.5])
    claim = ordering(better={**OURS, "setting": "gamma=0.1"}, worse={**OURS, "setting": "gamma=0.5"})
    row = verdict_of(claim, table)
    assert row["verdict"] == "reproduced"
    assert row["published"] == "toy (gamma=0.1) < toy (gamma=0.5)"


# threshold


@pytest.mark.parametrize(
    ("keys", "values", "verdict"),
    [
        ({"at_most": 3}, [1, 2, 3], "reproduced"),
        ({"at_most": 2.5}, [1, 2, 3], "not tested"),
        ({"at_most": 0.5}, [1, 2, 3], "not reproduced"),
        ({"at_least": 1}, [1, 2, 3], "reproduced"),
        ({"at_least": 2}, [1, 2, 3], "not tested"),
        ({"at_least": 4}, [1, 2, 3], "not reproduced"),
        ({"at_most": 1}, [1, 1], "reproduced"),
        ({"at_least": 1}, [1, 1], "reproduced"),
        ({"at_most": 3, "every_seed": True}, [1, 2, 3], "reproduced"),
        ({"at_most": 2.9, "every_seed": True}, [1, 2, 3], "not reproduced"),
        ({"at_least": 1, "every_seed": True}, [1], "reproduced"),
        ({"at_least": 2, "every_seed": True}, [1, 5, 9], "not reproduced"),
        ({"at_most": 3, "every_seed": True}, [1, None, 2], "not reproduced"),
    ],
)
def test_threshold_verdicts(keys, values, verdict):
    assert verdict_of(threshold(**keys), runs(values))["verdict"] == verdict


def test_threshold_texts():
    assert verdict_of(threshold(at_most=2.5), runs([1, 2, 3]))["published"] == "≤ 2.5"
    assert "undecided" in verdict_of(threshold(at_most=2.5), runs([1, 2, 3]))["reason"]
    row = verdict_of(threshold(at_most=2.5, every_seed=True), runs([1, 2, 3]))
    assert "fails in 1 of 3 seeds: at most 2.5, worst 3" in row["reason"]


def test_threshold_against_a_quantity_is_paired():
    bound = {**OURS, "metric": "bound"}
    # Overall 1 … 9 is far above the smallest bound, but below its own bound in every seed.
    tables = runs([1, 5, 9]), runs([1.5, 5.5, 9.5], metric="bound")
    row = verdict_of(threshold(at_most=bound), *tables)
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["ci_high"]) == (-0.5, -0.5)
    assert row["published"] == "≤ toy (bound)"
    assert row["reason"].startswith("ours − limit: mean -0.5")
    assert verdict_of(threshold(at_least=bound), *tables)["verdict"] == "not reproduced"
    assert verdict_of(threshold(at_most=bound, every_seed=True), *tables)["verdict"] == "reproduced"


def test_every_seed_needs_a_value_in_every_seed():
    bound = {**OURS, "metric": "bound"}
    tables = runs([1, 5, 9]), runs([2, 6], metric="bound")
    row = verdict_of(threshold(at_most=bound, every_seed=True), *tables)
    assert row["verdict"] == "not tested"
    assert "holds in 2 seeds, but 3 were run" in row["reason"]
    assert "1 of 3 seeds of toy (bound) without a value" in row["reason"]


# trend


@pytest.mark.parametrize(
    ("direction", "per_seed", "verdict", "words"),
    [
        ("falling", [[4, 3, 2, 1], [9, 8, 7, 6]], "reproduced", "below 0"),
        ("rising", [[1, 2, 3, 4], [6, 7, 8, 9]], "reproduced", "above 0"),
        ("rising", [[4, 3, 2, 1], [9, 8, 7, 6]], "not reproduced", "reversed"),
        ("rising", [[1, 2, 3, 4], [4, 3, 2, 1]], "not reproduced", "no trend seen"),
        ("falling", [[5, 5, 5, 5], [5, 5, 5, 5]], "not reproduced", "no trend seen"),
    ],
)
def test_trend_verdicts_along_rounds(direction, per_seed, verdict, words):
    row = verdict_of(trend(direction=direction), curves(per_seed, [0, 1, 2, 3]))
    assert row["verdict"] == verdict
    assert words in row["reason"]
    assert row["published"] == f"{direction} with round"


def test_trend_rank_correlation_worked_by_hand():
    # Ranks 1 2 3 4 against 2 1 3 4: ρ = 1 − 6·(1 + 1) / (4·15) = 0.8. Tied 1 1 2: ranks 1.5 1.5 3: √3 / 2.
    row = verdict_of(trend(direction="rising"), curves([[2, 1, 3, 4]] * 2, [0, 1, 2, 3]))
    assert row["ci_low"] == pytest.approx(0.8)
    assert row["ours"] == "rank correlation 0.8 ± 0"
    tied = verdict_of(trend(direction="rising"), curves([[1, 1, 2]] * 2, [0, 1, 2]))
    assert tied["ci_high"] == pytest.approx(math.sqrt(3) / 2)


def test_trend_along_a_setting_orders_numbers_not_texts():
    # As texts, 10 would come before 2 and 5.
    table = grid([[1, 2, 3], [1, 2, 3]], ["2", "5", "10"])
    row = verdict_of(trend("gamma", "rising"), table)
    assert row["verdict"] == "reproduced"
    assert (row["ci_low"], row["seeds"]) == (1.0, 2)


def test_trend_along_a_setting_takes_the_last_round():
    early = grid([[9, 5, 1], [9, 5, 1]], [1, 2, 3], round=0)
    assert verdict_of(trend("gamma", "rising"), early, grid([[1, 2, 3]] * 2, [1, 2, 3]))["verdict"] == ("reproduced")


@pytest.mark.parametrize(
    ("along", "table", "words"),
    [
        ("gama", grid([[1, 2, 3]] * 2, [1, 2, 3]), "has the key 'gama'; did you mean 'gamma'?"),
        ("gamma", grid([[1, 2, 3]] * 2, ["a", "b", "c"]), "'gamma' in toy/line is not a number"),
        ("gamma", grid([[1, 2]] * 2, [1, 2]), "needs 3 values of 'gamma'"),
        (
            "gamma",
            grid([[1, 2, 3]] * 2, ["1,steps=1", "2,steps=1", "3,steps=2"]),
            "must say which setting",
        ),
        ("round", grid([[1, 2, 3]] * 2, [1, 2, 3]), "must say which setting"),
    ],
)
def test_trend_that_cannot_be_decided(along, table, words):
    row = verdict_of(trend(along, "rising"), table)
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


# consistency


def test_consistency_of_printed_numbers():
    row = verdict_of(consistency("100 * (a - b) / a", 24.9, 0.1, a=4.0, b=3.0))
    assert (row["verdict"], row["ours"], row["published"]) == ("reproduced", "25", "24.9")
    assert (row["data"], row["seeds"]) == ("published", 0)
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
    agree = verdict_of(consistency("2 * a", 4, a=OURS), runs([1, 3]))
    assert (agree["verdict"], agree["seeds"], agree["data"]) == ("reproduced", 2, "synthetic")
    assert verdict_of(consistency("2 * a", 5, a=OURS), runs([1, 3]))["verdict"] == "not reproduced"
    lost = verdict_of(consistency("2 * a", 5, a=OURS), runs([None, None]))
    assert lost["verdict"] == "not tested"
    assert "2 of 2 runs diverged" in lost["reason"]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a + b * 2", 8.0),
        ("-(a - b) ** 2", -1.0),
        ("sqrt(abs(-9)) / b", 1.0),
        ("max(a, b, 10) - min(a, b)", 8.0),
        ("2 ** -1", 0.5),
    ],
)
def test_expressions(text, result):
    assert arithmetic.evaluate(text, {"a": 2, "b": 3}) == result


UNSAFE = [
    "__import__('os')",
    "a.b",
    "a.__class__",
    "a[0]",
    "lambda: 1",
    "[a for a in (1, 2)]",
    "a if a else a",
    "a < 1",
    "a // 1",
    "a % 1",
    "+a",
    "'x'",
    "True",
    "1j",
    "abs(x=a)",
    "abs(*a)",
    "eval(a)",
    "c",
    "abs",
    "(a)(a)",
    "",
    "a +",
    "(" * 150 + "a" + ")" * 49,
    "a" + "+a" * 200,
]


@pytest.mark.parametrize("text", UNSAFE)
def test_unsafe_expressions_are_refused_before_anything_runs(text):
    with pytest.raises(ValueError, match=r".") as refused:
        arithmetic.check_expression(text, ["a"])
    assert "\n" not in str(refused.value)
    assert verdict_of(consistency(text, a=1))["verdict"] == "not tested"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9**9**9**9", "exponent"),
        ("2 ** 101", "exponent 101 is larger than 100"),
        ("(1e300 * 1e300)", "not finite"),
        ("1 / (a - a)", "has no value"),
        ("sqrt(-a)", "has no value"),
        ("(-a) ** 0.5", "not a real number"),
        ("1e99 ** 99", "has no value"),
        ("min(a)", "has no value"),
        ("sqrt(a, a)", "has no value"),
    ],
)
def test_expressions_without_a_value_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        arithmetic.evaluate(text, {"a": 1.0})
    assert verdict_of(consistency(text, a=1))["verdict"] == "not tested"


# What holds for every kind

FOUR = [value(), ordering(), threshold(at_most=1000), trend()]


@pytest.mark.parametrize("claim", FOUR, ids=lambda claim: claim["kind"])
def test_one_seed_has_no_interval(claim):
    tables = curves([[163, 162, 161]], [0, 1, 2]), curves([[183, 182, 181]], [0, 1, 2], algorithm="fedavg")
    row = verdict_of(claim, *tables)
    assert (row["verdict"], row["seeds"]) == ("not tested", 1)
    assert "one seed: no interval" in row["reason"]
    assert math.isnan(row["ci_low"])
    assert math.isnan(row["ci_high"])
    # The very same numbers in a second seed decide it.
    again = [table.assign(seed=1) for table in tables]
    assert verdict_of(claim, *tables, *again)["verdict"] == "reproduced"


def test_one_seed_that_diverged_is_not_tested():
    row = verdict_of(value(), runs([None]))
    assert row["verdict"] == "not tested"
    assert "1 of 1 runs diverged" in row["reason"]


def test_diverged_runs_are_left_out_and_counted():
    row = verdict_of(value(), runs([159, 160, 161, None]))
    assert (row["verdict"], row["seeds"], row["ours"]) == ("reproduced", 3, "160 ± 1")
    assert "1 of 4 runs diverged" in row["reason"]


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


@pytest.mark.parametrize(("diverged", "verdict"), [(2, "reproduced"), (3, "not reproduced"), (4, "not reproduced")])
def test_more_than_half_diverged_is_not_reproduced(diverged, verdict):
    row = verdict_of(value(), runs([None] * diverged + [160] * (4 - diverged)))
    assert row["verdict"] == verdict
    assert f"{diverged} of 4 runs diverged" in row["reason"]
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
    # gamma = 9 diverges in both seeds; its flat start must not spoil the order of the rest.
    table = grid([[1, 2, 3, None], [1, 2, 3, None]], [1, 2, 3, 9])
    row = verdict_of(trend("gamma", "rising"), table)
    assert (row["verdict"], row["seeds"]) == ("reproduced", 2)
    assert "2 of 8 runs diverged" in row["reason"]
    table = grid([[1, None, None, None], [1, None, None, None]], [1, 2, 3, 9])
    assert verdict_of(trend("gamma", "rising"), table)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"experiment": "lien"}, "there is no table toy/lien; did you mean 'toy/line'?"),
        ({"experiment": "xyz"}, "there is no table toy/xyz"),
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
    row = verdict_of(claim, runs([160, 161]), runs([1, 2], "fedavg"))
    assert row["verdict"] == "not tested"
    assert words in row["reason"]


@pytest.mark.parametrize(
    ("scale", "needed", "verdict"),
    [
        ("smoke", "demo", "not tested"),
        ("demo", "paper", "not tested"),
        ("demo", "demo", "reproduced"),
        ("paper", "demo", "reproduced"),
        ("smoke", None, "reproduced"),
    ],
)
def test_min_scale(scale, needed, verdict):
    claim = value(min_scale=needed) if needed else value()
    row = verdict_of(claim, runs([160, 160]), scale=scale)
    assert row["verdict"] == verdict
    if verdict == "not tested":
        assert row["reason"] == f"scale {scale} is too small: needs {needed}"
        assert row["published"] == "160"


def test_unknown_scale_is_an_error():
    with pytest.raises(UserError, match="did you mean 'smoke'"):
        verdict_of(value(), runs([160, 160]), scale="smok")


STAND_IN = [
    (value(), "not tested"),
    (value(published=9000), "not tested"),
    (value(published=9000, direction={"above": 0}), "not tested"),
    (ordering(), "direction"),
    (ordering(published=20, tolerance={"absolute": 1}), "direction"),
    (ordering(by="higher"), "not reproduced"),
    (threshold(at_most=1000), "direction"),
    (threshold(at_most=1000, every_seed=True), "direction"),
    (threshold(at_most=1), "not reproduced"),
    (trend(), "direction"),
    (trend(direction="rising"), "not reproduced"),
    (consistency("a", 161, a=OURS), "not tested"),
]


@pytest.mark.parametrize(("claim", "verdict"), STAND_IN)
def test_a_stand_in_never_reproduces_a_number_measured_on_real_data(claim, verdict):
    tables = (
        curves([[163, 162, 161]] * 2, [0, 1, 2]),
        curves([[183, 182, 181]] * 2, [0, 1, 2], algorithm="fedavg"),
    )
    claim = {**claim, "measured_on": "real"}
    row = verdict_of(claim, *tables, data="standin")
    assert (row["verdict"], row["data"]) == (verdict, "standin")
    assert "on standin data, which never reproduces a number measured on real data" in row["reason"]
    real = verdict_of(claim, *tables, data="real")
    assert "never reproduces" not in real["reason"]
    if verdict in ("direction", "not reproduced"):
        assert real["verdict"] == {"direction": "reproduced"}.get(verdict, verdict)


def test_one_stand_in_among_real_data_makes_the_claim_a_stand_in():
    tables = runs([1, 2], data="real"), runs([3, 4], "fedavg", data="standin")
    row = verdict_of(ordering(measured_on="real"), *tables)
    assert (row["verdict"], row["data"]) == ("direction", "standin")


def test_synthetic_data_is_no_real_data_either():
    tables = runs([1, 2]), runs([3, 4], "fedavg")
    assert verdict_of(ordering(measured_on="real"), *tables)["verdict"] == "direction"
    assert verdict_of(ordering(measured_on="synthetic"), *tables)["verdict"] == "reproduced"


def test_consistency_of_measured_numbers_is_about_real_data_unless_it_says_so():
    claim = {**COMMON, **consistency("a", 1, a=OURS)}
    del claim["measured_on"]
    result = ledger.judge({"study": "toy", "claims": [claim]}, {"toy/line": runs([1, 1])}, None, "demo")
    assert result["verdict"].tolist() == ["not tested"]


def test_printed_numbers_do_not_depend_on_our_data():
    row = verdict_of(consistency() | {"measured_on": "real"}, runs([1], data="standin"))
    assert (row["verdict"], row["data"]) == ("reproduced", "published")


# Quantities


def number(table, **keys) -> list[float]:
    return quantities.measure({"toy/line": table}, "toy", {**OURS, **keys}).values.tolist()


def test_quantity_rounds_and_reductions():
    table = curves([[1, 2, 6], [10, 20, 60]], [0, 5, 10])
    assert number(table) == [6, 60]
    assert number(table, round="first") == [1, 10]
    assert number(table, round=5) == [2, 20]
    assert number(table, round="all") == [3, 30]
    assert number(table, round="all", reduce="median") == [2, 20]
    assert number(table, round="all", reduce="max") == [6, 60]
    assert number(table, round="all", reduce="min") == [1, 10]
    # Population spread of 1, 2, 6: sqrt((4 + 1 + 9) / 3).
    assert number(table, round="all", reduce="std") == pytest.approx([math.sqrt(14 / 3), 10 * math.sqrt(14 / 3)])
    assert number(table, reduce="std") == [0, 0]


def test_quantity_clients_and_groups():
    table = pd.concat(
        [
            runs([1], client=0, group="a"),
            runs([3], client=1, group="a"),
            runs([8], client=2, group="b"),
        ]
    )
    assert number(table) == [4]
    assert number(table, client=1) == [3]
    assert number(table, group="a") == [2]
    assert number(table, reduce="max") == [8]
    both = pd.concat([table.assign(group=""), runs([100])])
    assert number(both, client="all") == [4]
    assert number(both, client=-1) == [100]


def test_overall_rows_are_not_averaged_with_those_of_clients():
    table = pd.concat([runs([1, 1]), runs([3, 3], client=0)])
    with pytest.raises(quantities.Untested, match="must say which client: toy/line has '-1', '0'"):
        number(table)


def test_splits_and_settings_are_not_averaged():
    with pytest.raises(quantities.Untested, match="must say which split: toy/line has 'test', 'train'"):
        number(pd.concat([runs([1, 1]), runs([3, 3], split="train")]))
    with pytest.raises(quantities.Untested, match="must say which setting"):
        number(grid([[1, 2]], [0.1, 0.5]))


def test_all_settings_where_the_claim_says_so_and_for_a_worst_case():
    table = grid([[1, 2, 6], [4, 5, 9]], [0.1, 0.5, 0.9])
    assert number(table, setting="all") == [3, 6]
    assert number(table, reduce="max") == [6, 9]
    assert number(table, reduce="min") == [1, 4]
    assert number(table, setting="gamma=0.5", reduce="max") == [2, 5]
    claim = threshold(ours={**OURS, "reduce": "max"}, at_most=9, every_seed=True)
    assert verdict_of(claim, table)["verdict"] == "reproduced"
    table.loc[0, "diverged"] = True
    row = verdict_of(claim, table)
    assert row["verdict"] == "not reproduced"
    assert "1 of 6 runs diverged" in row["reason"]


def test_trend_over_all_other_settings():
    names = [f"{gamma},steps={steps}" for gamma in (1, 2, 3) for steps in (1, 2)]
    # Means over steps at gamma 1, 2, 3: 5, 6, 7; along either step alone the order is not monotone.
    table = grid([[1, 9, 8, 4, 2, 12]] * 2, names)
    assert verdict_of(trend("gamma", "rising", setting="all"), table)["ci_low"] == pytest.approx(1.0)
    # Ranks of 1, 8, 2 against 1, 2, 3: ρ = 1 − 6·(0 + 1 + 1) / (3·8) = 0.5.
    assert verdict_of(trend("gamma", "rising", setting="steps=1"), table)["ci_low"] == pytest.approx(0.5)


def test_quantity_setting_may_name_some_of_the_pairs():
    table = grid([[1, 2, 3]], ["0.1,steps=5", "0.5,steps=5", "0.1,steps=50"])
    assert number(table, setting="steps=5,gamma=0.5") == [2]
    assert number(table, setting="steps=50") == [3]
    with pytest.raises(quantities.Untested, match="must say which setting"):
        number(table, setting="gamma=0.1")
    exact = pd.concat([table, grid([[7]], ["0.1"])])
    assert number(exact, setting="gamma=0.1") == [7]


# Intervals


def test_interval_approaches_the_normal_one():
    x = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    ci = intervals.interval(x, "name")
    half = 1.96 * x.std() / math.sqrt(400)
    assert ci.low == pytest.approx(x.mean() - half, abs=0.03)
    assert ci.high == pytest.approx(x.mean() + half, abs=0.03)
    assert intervals.interval(x, "other").low != ci.low


def test_every_claim_draws_its_own_bootstrap():
    claims = [{**COMMON, **value(), "id": name} for name in ("a", "b")]
    table = runs(np.random.default_rng(0).normal(size=9))
    lows = ledger.judge({"study": "toy", "claims": claims}, {"toy/line": table}, None, "demo")["ci_low"]
    assert lows[0] != lows[1]
    alone = ledger.judge({"study": "toy", "claims": claims[1:]}, {"toy/line": table}, None, "demo")
    assert alone["ci_low"][0] == lows[1]


def test_interval_of_equal_numbers_is_that_number():
    for x in (0.1, 1 / 3, 1e-30, -7.7):
        ci = intervals.interval(np.full(7, x), "name")
        assert (ci.low, ci.high) == (x, x)


def test_the_ledger_is_the_same_to_the_byte():
    claims = {"study": "toy", "claims": [{**COMMON, **claim, "id": f"c{i}"} for i, claim in enumerate(FOUR)]}
    rng = np.random.default_rng(0)
    table = curves(rng.normal(size=(6, 5)).tolist(), range(5))
    table = pd.concat([table, table.assign(algorithm="fedavg", value=table["value"] + 0.3)])
    before = copy.deepcopy(claims), table.copy()

    def text(rows):
        buffer = io.StringIO()
        ledger.judge(claims, {"toy/line": rows}, None, "demo").to_csv(buffer, index=False)
        return buffer.getvalue()

    first = text(table)
    assert text(table) == first
    assert text(table.sample(frac=1, random_state=1)) == first
    assert text(table.assign(value=table["value"] * 1.01)) != first
    # Judging does not change its arguments.
    assert claims == before[0]
    pd.testing.assert_frame_equal(table, before[1])


# Claims files

GOOD = """
study: toy
claims:
- id: epochs
  source: "§IV, Fig. 3(b)"
  statement: All servers agree after 160 epochs.
  kind: value
  measured_on: synthetic
  min_scale: demo
  ours: {experiment: line, algorithm: toy, metric: loss, round: last, reduce: mean}
  published: 160
  tolerance: {relative: 0.05}
  direction: {above: 100}
- id: better
  source: Table 1
  statement: It is better.
  kind: ordering
  measured_on: real
  better: {experiment: line, algorithm: toy, metric: loss, client: all}
  worse: {experiment: line, algorithm: fedavg, metric: loss, client: -1}
  by: lower
  margin: 0.1
  published_id: table1/gain
  tolerance: {absolute: 0.2}
- id: bound
  source: Theorem 1
  statement: It stays below the bound.
  kind: threshold
  measured_on: synthetic
  ours: {experiment: line, algorithm: toy, metric: loss}
  at_most: {experiment: line, algorithm: toy, metric: bound}
  every_seed: true
- id: falls
  source: Fig. 2
  statement: It falls.
  kind: trend
  measured_on: synthetic
  ours: {experiment: line, algorithm: toy, metric: loss, along: gamma, round: 10}
  direction: falling
- id: sum
  source: Table 1
  statement: The row adds up.
  kind: consistency
  expression: (a + b) / 2
  numbers: {a: 1, b: table1/gain}
  stated: 1.5
  tolerance: {absolute: 0.05}
  note: Rounded to one digit.
"""


def load(tmp_path, text=GOOD):
    path = tmp_path / "toy.yaml"
    path.write_text(text, encoding="utf-8")
    return load_claims(path)


def test_a_good_file_loads_and_is_judged(tmp_path):
    claims = load(tmp_path)
    assert claims == yaml.safe_load(GOOD)
    result = ledger.judge(claims, {}, None, "demo")
    assert result["claim"].tolist() == ["toy/epochs", "toy/better", "toy/bound", "toy/falls", "toy/sum"]
    assert set(result["verdict"]) == {"not tested"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("study: toy", "studdy: toy", "unknown key 'studdy'; did you mean 'study'?"),
        (
            "  measured_on: synthetic\n  min",
            "  measuredon: synthetic\n  min",
            "unknown key 'epochs.measuredon'; ",
        ),
        (
            "metric: loss, round: last",
            "metric: loss, rond: last",
            "unknown key 'epochs.ours.rond'; did you mean 'round'",
        ),
        ("reduce: mean", "reduce: meen", "epochs.ours.reduce: 'meen' is unknown; did you mean 'mean'?"),
        ("round: last", "round: lst", "epochs.ours.round: 'lst' is unknown; did you mean 'last'?"),
        ("round: last", "round: -1", "epochs.ours.round: -1 is too small, must be ≥ 0"),
        ("kind: value", "kind: valu", "epochs.kind: 'valu' is unknown; did you mean 'value'?"),
        ("min_scale: demo", "min_scale: dmo", "epochs.min_scale: 'dmo' is unknown; did you mean 'demo'?"),
        ("  published: 160\n", "", "epochs: needs exactly one of published, published_id"),
        (
            "  published: 160\n",
            "  published: 1e-3\n",
            "epochs.published: '1e-3' is not of type number",
        ),
        (
            "{relative: 0.05}",
            "{relative: 0.05, absolute: 1}",
            "epochs.tolerance: needs exactly one of absolute, rel",
        ),
        ("{relative: 0.05}", "{absolute: -1}", "epochs.tolerance.absolute: -1 is too small, must be ≥ 0"),
        ("{above: 100}", "{above: 1, below: 2}", "epochs.direction: needs exactly one of above, below"),
        ("margin: 0.1", "at_most: 0.1", "unknown key 'better.at_most'"),
        ("  tolerance: {absolute: 0.2}\n", "", "better: 'tolerance' is a dependency of 'published_id'"),
        ("  published_id: table1/gain\n", "", "better: needs exactly one of published, published_id"),
        ("by: lower", "by: less", "better.by: 'less' is unknown"),
        ("client: all", "client: al", "better.better.client: 'al' is unknown; did you mean 'all'?"),
        ("every_seed: true", "at_least: 3", "bound: needs exactly one of at_most, at_least"),
        ("at_most: {experiment: line, ", "at_most: {", "bound.at_most: 'experiment' is missing"),
        ("along: gamma", "along: round", "falls.ours.round: 10 is unknown; valid: all"),
        ("along: gamma, ", "", "falls.ours: 'along' is missing"),
        (
            "direction: falling",
            "direction: faling",
            "falls.direction: 'faling' is unknown; did you mean 'falling'?",
        ),
        (
            "(a + b) / 2",
            "(a + bb) / 2",
            "sum.expression: 'bb' is not one of the given numbers; did you mean 'b'?",
        ),
        ("(a + b) / 2", "a.b", "sum.expression: 'a.b' is not allowed"),
        ("b: table1/gain", "b: 1e-3", "sum.numbers.b: '1e-3' does not match"),
        ("{a: 1, b: table1/gain}", "{a: 1, b: 2, 1c: 3}", "unknown key 'sum.numbers.1c'"),
        ("stated: 1.5", "stated: {}", "sum.stated: {} is not of type"),
        ("{absolute: 0.05}", "{relative: 0.05}", "unknown key 'sum.tolerance.relative'"),
        ("id: bound", "id: epochs", "the id 'epochs' is there twice"),
        ("- id: epochs\n  source", "- source", "claim 1: 'id' is missing"),
        ("study: toy", "study: [", "line 4: "),
        (GOOD, "- 1", "the file: [1] is not of type object"),
        (GOOD, "study: toy\nclaims: [a]", "claims.0: 'a' is not of type object"),
        (GOOD, "study: toy\nclaims: []", "claims: "),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, old, new, words):
    assert old in GOOD
    with pytest.raises(UserError) as refused:
        load(tmp_path, GOOD.replace(old, new, 1))
    text = str(refused.value)
    assert text.startswith(f"{tmp_path / 'toy.yaml'}: ")
    assert words in text
    assert "\n" not in text
    assert len(text) < 400


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"no\.yaml: no such file"):
        load_claims(tmp_path / "no.yaml")


def test_the_schema_is_valid_and_closed():
    schema = yaml.safe_load((SCHEMAS / "claims.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    objects = [schema, *(part for name, part in schema["$defs"].items() if name != "claim")]
    for part in objects:
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
    # A claim is closed by its kind, so every kind needs its own closed definition.
    assert {branch["then"]["$ref"] for branch in schema["$defs"]["claim"]["allOf"]} == {
        f"#/$defs/{kind}" for kind in schema["$defs"]["claim"]["properties"]["kind"]["enum"]
    }


def test_every_quantity_of_a_claim_is_found(tmp_path):
    found = {claim["id"]: set(quantities_of(claim)) for claim in load(tmp_path)["claims"]}
    assert found["better"] == {("line", "toy"), ("line", "fedavg")}
    assert found["bound"] == {("line", "toy")}
    assert found["sum"] == set()


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        ("evidence.claim_files", {"pandas", "torch"}),
        ("evidence.ledger", {"torch", "fedrepro.core.rounds"}),
        ("evidence.tables", {"torch", "fedrepro.core.rounds"}),
        ("evidence.provenance", {"torch", "fedrepro.core.rounds"}),
        ("report.page", {"torch", "fedrepro.core.rounds"}),
        ("report.rendering", {"torch", "fedrepro.core.rounds"}),
        ("report.notebook", {"torch", "fedrepro.core.rounds"}),
    ],
)
def test_the_simulator_is_not_imported(module, left_out):
    code = f"import sys, fedrepro.{module}; print(*(set(sys.modules) & {left_out!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_the_time_of_a_run_is_its_share_of_its_jobs():
    """Two jobs of two settings each: 8 s for two seeds, 6 s for one."""
    table = pd.concat([runs([1, 2, 3], setting=setting) for setting in ("a", "b")], ignore_index=True)
    jobs = [
        {"algorithm": "toy", "seeds": [0, 1], "seconds": 8.0},
        {"algorithm": "toy", "seeds": [2], "seconds": 6.0},
        {"algorithm": "another", "seeds": [0], "seconds": 99.0},
    ]
    timed = quantities.with_seconds(table, jobs)
    seconds = timed[timed["metric"] == "seconds"].set_index(["setting", "seed"])["value"]
    assert seconds.to_dict() == {(s, k): (2.0, 2.0, 3.0)[k] for s in "ab" for k in range(3)}
    claim = {"kind": "threshold", "ours": {**OURS, "metric": "seconds", "setting": "a"}, "at_most": 1}
    assert verdict_of(claim, timed)["verdict"] == "not reproduced"
    assert verdict_of({**claim, "at_most": 3.5}, timed)["verdict"] == "reproduced"
