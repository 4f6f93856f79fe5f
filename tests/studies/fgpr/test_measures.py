"""Measures of the study fgpr, by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.fgpr.measures import decay_exponent, late_mean, measure, recovered_round


def test_an_error_like_one_over_t_has_the_exponent_1_until_its_floor():
    t = 4.0 * np.arange(200)  # four steps per round
    assert decay_exponent(5 / (1 + t), t) == pytest.approx(1)
    assert decay_exponent(5 / (1 + t) ** 2, t) == pytest.approx(2)
    assert decay_exponent(np.maximum(5 / (1 + t), 0.1), t) == pytest.approx(1)
    assert decay_exponent(np.exp(-0.05 * t) + 1e-3, t) > 1
    assert decay_exponent(5 / np.sqrt(1 + t), t) == pytest.approx(0.5)


def test_an_error_that_starts_at_its_floor_has_no_exponent():
    assert math.isnan(decay_exponent(np.full(20, 0.3), np.arange(20)))


def test_an_error_that_grows_has_none_either():
    assert math.isnan(decay_exponent(np.linspace(1, 5, 20), np.arange(20)))


def test_the_late_mean_is_of_the_last_tenth():
    assert late_mean(np.arange(20.0)) == 18.5
    assert late_mean(np.array([7.0])) == 7


def test_recovery_is_the_first_round_from_which_all_are_near_the_end():
    rounds = np.arange(6)
    assert recovered_round(np.array([9.0, 2, 1.05, 5, 1.02, 1]), rounds) == 4
    assert recovered_round(np.ones(6), rounds) == 0
    assert recovered_round(np.array([2.0, 2, 2, 2, 2, 1]), rounds) == 5


def rows(metric: str, values, split: str = "", algorithm: str = "fgpr") -> list[dict]:
    common = {
        "experiment": "fgpr/x",
        "algorithm": algorithm,
        "setting": "",
        "seed": 0,
        "step": 0,
        "client": -1,
        "group": "",
    }
    rest = {"split": split, "metric": metric, "data": "synthetic", "diverged": False}
    return [{**common, **rest, "round": t, "value": v} for t, v in enumerate(values)]


def test_rows_of_a_table():
    errors = 8 / (1 + np.arange(40.0))
    steps = rows("iterations", np.arange(40.0))
    table = pd.DataFrame([*rows("error", errors), *steps, *rows("a_rmse", [3, 2, 1, 1, 1, 1, 1.0], "test")])
    table = table[TABLE_COLUMNS]
    found = measure(table).set_index("metric")["value"]
    assert found["late_error"] == pytest.approx(errors[-4:].mean())
    assert found["error_left"] == pytest.approx(errors[-4:].mean() / 8)
    assert found["decay_exponent"] == pytest.approx(1)
    assert found["recovered_round"] == 2
    assert "late_error_noise" not in found


def test_the_distance_from_maximum_likelihood_is_two_sided():
    """θ₁ goes from 5 to 2 ± 0.5 and θ₂ stays at 1; maximum likelihood ends at (2, 1): 0.25/9 is left."""
    for end in (1.5, 2.5):
        ours = [*rows("theta_signal", [5.0, end]), *rows("theta_noise", [1.0, 1.0])]
        best = [
            line for m, v in (("theta_signal", 2.0), ("theta_noise", 1.0)) for line in rows(m, [v], "", "gp_maximum")
        ]
        found = measure(pd.DataFrame([*ours, *best])[TABLE_COLUMNS]).set_index("metric")["value"]
        assert found["distance_left"] == pytest.approx(0.25 / 9)


def test_a_table_without_any_of_it_gives_no_rows():
    table = pd.DataFrame(rows("loss", [1.0, 2.0], "train"))[TABLE_COLUMNS]
    assert measure(table).empty
