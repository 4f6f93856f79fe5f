"""The privacy account against cases worked by hand, and its monotonicity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from fedrepro.errors import UserError
from fedrepro.studies.sgld import measures
from fedrepro.studies.sgld.measures import epsilon, noise_multipliers


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """The exact ε(δ) of one Gaussian mechanism (Balle & Wang 2018, Theorem 8), with sensitivity 1 and deviation z."""

    def excess(e: float) -> float:
        a, b = 1 / (2 * multiplier), e * multiplier
        return norm.cdf(a - b) - math.exp(e) * norm.cdf(-a - b) - delta

    return brentq(excess, 0.0, 200.0)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 4.0])
def test_one_step_on_all_data_is_a_gaussian_mechanism(multiplier):
    """Its Rényi divergence is α/(2z²); the bound that follows is above the exact ε and close to it."""
    delta = 1e-5
    by_hand = min(
        a / (2 * multiplier**2) + math.log((a - 1) / a) - (math.log(delta) + math.log(a)) / (a - 1)
        for a in (1 + k / 1000 for k in range(1, 60_000))
    )
    found = epsilon([multiplier], rate=1.0, rounds=1, delta=delta)
    assert by_hand <= found <= 1.01 * by_hand  # only integer orders are tried
    exact = gaussian_epsilon(multiplier, delta)
    assert exact < found < 1.3 * exact


def test_steps_add_up():
    """k steps with multiplier z on all data are one step with z/√k."""
    together = epsilon([2.0], 1.0, 1, 1e-5)
    assert epsilon([4.0], 1.0, 4, 1e-5) == pytest.approx(together, rel=1e-9)
    assert epsilon([4.0] * 2, 1.0, 2, 1e-5) == pytest.approx(together, rel=1e-9)


def test_different_steps_are_accounted_for_from_above():
    mixed = epsilon([1.0, 3.0], 0.1, 50, 1e-5)
    assert epsilon([3.0], 0.1, 100, 1e-5) < mixed < epsilon([1.0], 0.1, 100, 1e-5)
    # 1/1² + 1/3² = 10/9 is what one step with z = √0.9 has; rounding z down costs at most 21 % of a Rényi divergence
    one = epsilon([math.sqrt(0.9)], 1.0, 1, 1e-5)
    assert one <= epsilon([1.0, 3.0], 1.0, 1, 1e-5) <= 1.21 * one


def test_more_noise_fewer_rounds_rarer_sampling_and_a_larger_delta_are_more_private():
    base = epsilon([1.0], 0.1, 100, 1e-5)
    assert epsilon([2.0], 0.1, 100, 1e-5) < base
    assert epsilon([1.0], 0.01, 100, 1e-5) < base
    assert epsilon([1.0], 0.1, 10, 1e-5) < base
    assert epsilon([1.0], 0.1, 100, 1e-3) < base
    assert 0 < base < math.inf


def test_the_ends():
    assert epsilon([0.0], 0.1, 1, 1e-5) == math.inf
    assert epsilon([1.0], 0.0, 1, 1e-5) == 0


def test_noise_multipliers_by_hand():
    # η = 0.01, β = 0.25: noise √0.0025 = 0.05 on a step of 0.01·20 = 0.2; a quarter of the step: 0.025 on 0.05
    assert noise_multipliers([0.01, 0.0025], 0.25, 20.0) == pytest.approx([0.25, 0.5], rel=1e-14)
    assert noise_multipliers([0.01], 0.0, 20.0) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], 0.1, 1, 0.0), r"delta = 0\.0"),
        (([1.0], 1.5, 1, 1e-5), r"rate = 1\.5"),
    ],
)
def test_a_wrong_value_is_named(arguments, message):
    with pytest.raises(UserError, match=message):
        epsilon(*arguments)


@pytest.mark.parametrize("multiplier", [0.002, 0.0033, 0.007, 0.02, 0.05, 0.1, 0.25])
def test_with_little_noise_the_orders_are_dense_enough(monkeypatch, multiplier):
    """A grid too coarse near 1 is far above, with a kink wherever the best order changes."""
    arguments = ([multiplier] * 50, 0.1, 60, 1e-5)
    found = epsilon(*arguments)
    monkeypatch.setattr(measures, "FINE_ORDERS", tuple((1 + np.geomspace(1e-7, 60, 800)).tolist()))
    dense = epsilon(*arguments)
    assert 0.999 * dense <= found <= 1.02 * dense
    monkeypatch.setattr(measures, "FINE_ORDERS", (1.0001, 1.001, 1.01, 1.1, 1.5, *range(2, 65)))
    assert epsilon(*arguments) >= 0.999 * found


def test_epsilon_with_little_noise_is_close_to_a_gaussian_mechanisms():
    """On all data, k steps are one with z/√k, whose best order is 1 + z·√(2·log(1/δ)/k): no coarser than the grid."""
    z, steps = 0.01, 100
    exact = min(
        steps * a / (2 * z**2) + math.log((a - 1) / a) - (math.log(1e-5) + math.log(a)) / (a - 1)
        for a in 1 + np.geomspace(1e-6, 1, 20_000)
    )
    assert exact <= epsilon([z], 1.0, steps, 1e-5) <= 1.01 * exact
