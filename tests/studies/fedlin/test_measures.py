"""Measures of the linear models on small tables by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.fedlin.measures import EARLY, measure, variant


def table(*rows: dict) -> pd.DataFrame:
    common = {"experiment": "fedlin/x", "round": 5, "step": 0, "client": -1, "group": "", "data": "real"}
    common |= {"diverged": False, "algorithm": "hm1", "setting": "", "seed": 0, "split": "test"}
    return pd.DataFrame([common | row for row in rows])[TABLE_COLUMNS]


def derived(found: pd.DataFrame, metric: str) -> dict:
    mine = found[found["metric"] == metric]
    assert set(mine["split"]) <= {"derived"}
    return {(r.algorithm, r.setting, r.seed, r.group): r.value for r in mine.itertuples()}


def test_the_setting_of_least_validation_error_is_taken_for_each_run_variant_and_output():
    rows = []
    errors = {  # (setting, seed, group): validation, test
        ("box,lr=1", 0, "a"): (0.3, 9.0),
        ("box,lr=2", 0, "a"): (0.2, 8.0),
        ("box,lr=1", 0, "b"): (0.1, 7.0),
        ("box,lr=2", 0, "b"): (0.2, 6.0),
        ("alone,lr=1", 0, "a"): (0.4, 5.0),
        ("box,lr=1", 1, "a"): (0.1, 4.0),
        ("box,lr=2", 1, "a"): (0.5, 3.0),
    }
    for (setting, seed, group), pair in errors.items():
        for split, value in zip(("validation", "test"), pair, strict=True):
            row = {"setting": setting, "seed": seed, "group": group, "metric": "a_rmse"}
            rows.append(row | {"split": split, "value": value})
    rows.append(rows[0] | {"round": 1, "split": "validation", "value": 0.0})  # not the last round
    found = derived(measure(table(*rows)), "a_rmse_tuned")
    assert found == {
        ("hm1", "box,lr=2", 0, "a"): 8.0,
        ("hm1", "box,lr=1", 0, "b"): 7.0,
        ("hm1", "alone,lr=1", 0, "a"): 5.0,
        ("hm1", "box,lr=1", 1, "a"): 4.0,
    }


def test_gains_are_paired_by_seed_batch_and_noise():
    errors = {
        ("hm1", "", "box 5, sd"): (3.0, 1.0),
        ("hm1", "", "separate 5, sd"): (4.0, 4.0),
        ("hm1", "", "separate 10, sd"): (9.0, 9.0),
        ("limit", "converged", "box 5, sd"): (2.0, 1.0),
        ("limit", "bayes", "box 5, sd"): (1.0, 0.5),
    }
    rows = [
        {"algorithm": a, "setting": s, "group": g, "seed": seed, "metric": "a_rmse_noise_free", "value": value}
        for (a, s, g), values in errors.items()
        for seed, value in enumerate(values)
    ]
    found = measure(table(*rows))
    over = derived(found, "gain_over_separate")
    assert [over["hm1", "", seed, "box 5, sd"] for seed in (0, 1)] == pytest.approx([0.25, 0.75])
    assert over["limit", "bayes", 0, "box 5, sd"] == pytest.approx(0.75)
    over = derived(found, "gain_over_converged")
    assert [over["hm1", "", seed, "box 5, sd"] for seed in (0, 1)] == pytest.approx([-0.5, 0.0])
    assert over["limit", "bayes", 1, "box 5, sd"] == pytest.approx(0.5)
    assert not derived(found, "spread_of_runs")  # two runs leave one out of one


def test_the_spread_of_runs_has_the_jackknifes_pseudo_values():
    # 1, 2, 6: s = √7 = 2.6458; without one of them √8, √12.5, √½. Pseudo-values 3s − 2s_i.
    values = (1.0, 2.0, 6.0)
    rows = [{"seed": seed, "metric": "a_rmse_noise_free", "value": value} for seed, value in enumerate(values)]
    found = derived(measure(table(*rows)), "spread_of_runs")
    expected = [3 * 7**0.5 - 2 * s for s in (8**0.5, 12.5**0.5, 0.5**0.5)]
    assert [found["hm1", "", seed, ""] for seed in range(3)] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("curve", "rounds"),
    [
        ([10, 5, 1.2, 1.08, 1.0, 1.0], 3),  # a hundredth of the way, 9, is 0.09
        ([10, 1, 5, 1, 1], 3),  # it must last
        ([10, 9, 8], 2),
        ([1, 1, 1], 0),
        ([10, math.inf, math.inf], math.inf),
    ],
)
def test_rounds_to_settle(curve, rounds):
    rows = [{"metric": "parameter_error", "split": "server", "round": t, "value": v} for t, v in enumerate(curve)]
    assert derived(measure(table(*rows)), "rounds_to_settle") == {("hm1", "", 0, ""): rounds}


@pytest.mark.parametrize(
    ("curve", "rounds"),
    [
        ([10, 5, 1.2, 1.08, 1.0, 7.0], 3),  # a hundredth of the way, 9, is 0.09; what follows does not count
        ([10, 11, 12], 0),
        ([10, 1, math.inf], 1),
        ([math.inf, 1, 1], math.inf),
    ],
)
def test_rounds_to_reach(curve, rounds):
    rows = [{"metric": "parameter_error", "split": "server", "round": t, "value": v} for t, v in enumerate(curve)]
    assert derived(measure(table(*rows)), "rounds_to_reach") == {("hm1", "", 0, ""): rounds}


def test_an_early_rest_counts_as_if_the_run_had_ended_there():
    curve = [10, 5, 1, *[1.0] * EARLY, 7.0, 3.0]
    rows = [{"metric": "parameter_error", "split": "server", "round": t, "value": v} for t, v in enumerate(curve)]
    found = measure(table(*rows))
    assert derived(found, "early_rounds_to_settle") == {("hm1", "", 0, ""): 2}
    assert derived(found, "rounds_to_settle") == {("hm1", "", 0, ""): len(curve) - 1}


def test_nothing_to_measure():
    assert measure(table({"metric": "loss", "value": 1.0})).empty
    assert list(measure(table({"metric": "loss", "value": 1.0}))) == TABLE_COLUMNS


def test_a_setting_without_its_grid():
    assert variant("box,lr=0.1,strength=2") == "box"
    assert variant("lr=0.1") == ""
