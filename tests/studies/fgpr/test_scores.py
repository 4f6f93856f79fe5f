"""Scores of a normal predictive law, by hand and against integration."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from fedrepro.studies.fgpr.gp.device_errors import LEVELS, coverage, crps, nlpd, rmse, scores


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_rmse_by_hand():
    assert rmse(t(1.0, 2.0), t(1.0, 5.0)).item() == pytest.approx(math.sqrt(4.5))


def test_nlpd_by_hand():
    """N(0; 0, 1) and N(3; 1, 4): ½ log 2π, and ½ log 8π + ½."""
    expected = (0.5 * math.log(2 * math.pi) + 0.5 * math.log(8 * math.pi) + 0.5) / 2
    assert nlpd(t(0.0, 1.0), t(1.0, 4.0), t(0.0, 3.0)).item() == pytest.approx(expected)


@pytest.mark.parametrize(("m", "v", "y"), [(0.0, 1.0, 0.0), (0.3, 0.25, 1.7), (-1.0, 4.0, -6.0)])
def test_crps_is_its_integral(m, v, y):
    law = stats.norm(m, math.sqrt(v))
    below, _ = integrate.quad(lambda u: law.cdf(u) ** 2, -np.inf, y)
    above, _ = integrate.quad(lambda u: law.sf(u) ** 2, y, np.inf)
    assert crps(t(m), t(v), t(y)).item() == pytest.approx(below + above, abs=1e-7)


def test_nlpd_is_minus_the_log_density():
    x = t(0.2, -1.3)
    assert nlpd(t(0.1, 0.4), t(0.3, 2.0), x).item() == pytest.approx(
        -np.mean([stats.norm(0.1, math.sqrt(0.3)).logpdf(0.2), stats.norm(0.4, math.sqrt(2.0)).logpdf(-1.3)])
    )


def test_crps_of_a_certain_law_is_the_absolute_error():
    assert crps(t(1.0, 2.0), t(0.0, 0.0), t(1.5, 1.0)).item() == pytest.approx(0.75, abs=1e-5)


def test_coverage_counts_the_targets_inside():
    """The 95 % interval of N(0, 4) is ±3.92."""
    y = t(0.0, 3.9, -3.9, 3.95, -10.0)
    assert coverage(torch.zeros(5).double(), torch.full((5,), 4.0).double(), y, 95).item() == pytest.approx(0.6)


def test_a_calibrated_law_covers_as_often_as_it_says():
    y = torch.from_numpy(np.random.default_rng(0).normal(2.0, 3.0, 200_000))
    found = scores(torch.full_like(y, 2.0), torch.full_like(y, 9.0), y)
    for level in LEVELS:
        assert found[f"coverage_{level}"].item() == pytest.approx(level / 100, abs=0.005)
    # E crps of the right normal law is sd/√π, E nlpd its entropy
    assert found["crps"].item() == pytest.approx(3 / math.sqrt(math.pi), rel=0.01)
    assert found["nlpd"].item() == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 9), rel=0.01)


def test_leading_axes_are_kept():
    found = scores(torch.zeros(3, 4, 5), torch.ones(3, 4, 5), torch.ones(3, 4, 5))
    assert all(value.shape == (3, 4) for value in found.values())
    assert found["rmse"].eq(1).all()
