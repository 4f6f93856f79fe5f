"""Gains and explained variance, worked by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.fgpr.measures import multi_fidelity_measures


def table(errors, experiment="fgpr/multi_fidelity_currin", rounds=(0, 7)):
    """errors: (algorithm, setting) → a_rmse of seeds 0, 1 at the last round; twice as much at the first."""
    lines = []
    for (algorithm, setting), values in errors.items():
        for seed, value in enumerate(values):
            for round in rounds:
                for metric, number in (("a_rmse", value * (1 if round else 2)), ("a_rmse_trivial", 2.0)):
                    lines.append([experiment, algorithm, setting, seed, round, 0, -1, "", "test", metric, number])
    return pd.DataFrame(lines, columns=TABLE_COLUMNS[:-2]).assign(data="synthetic", diverged=False)


ERRORS = {
    ("fgpr", "published"): (0.4, 0.6),
    ("separate", "published"): (1.0, 0.5),
    ("baseline", "separate"): (0.2, 0.5),
    ("baseline", "shared"): (0.1, 0.6),
}


@pytest.fixture(scope="module")
def found():
    return dict(multi_fidelity_measures(table(ERRORS)))


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("gain_published", [0.6, -0.2]), ("gain_budget", [0.8, 0.0]), ("gain_sharing", [0.5, -0.2])],
)
def test_gains_are_paired_by_seed_and_taken_at_the_last_round(found, metric, expected):
    assert found[metric].sort_values("seed")["value"].tolist() == pytest.approx(expected)
    assert set(found[metric]["round"]) == {7}


def test_a_gain_without_its_arms_is_left_out(found):
    assert "gain_sharing_ard" not in found


def test_explained_is_held_against_the_trivial_predictor(found):
    own = found["explained"].query("algorithm == 'separate'").sort_values("seed")
    assert own["value"].tolist() == pytest.approx([0.75, 1 - 0.0625])
    assert len(found["explained"]) == 8


def test_other_experiments_have_none_of_this():
    assert not dict(multi_fidelity_measures(table(ERRORS, "fgpr/sarcos")))
