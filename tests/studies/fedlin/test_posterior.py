"""Quantiles, coverage and inclusion by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedrepro.studies.fedlin.linear import devices


def test_quantiles_of_equal_weights_are_numpys_hazen():
    draws = torch.from_numpy(np.random.default_rng(0).normal(size=(57, 3)))
    weights = torch.full((57,), 1 / 57, dtype=torch.float64)
    found = devices.weighted_quantiles(draws, weights, (0.05, 0.5, 0.95))
    np.testing.assert_allclose(found, np.quantile(draws.numpy(), [0.05, 0.5, 0.95], axis=0, method="hazen"))


def test_a_weight_of_two_is_two_draws_in_the_middle():
    """Steps at 0 (½), 1 (¼), 2 (¼): middles at 0.25, 0.625, 0.875."""
    draws = torch.tensor([[2.0], [0.0], [1.0]], dtype=torch.float64)
    weights = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    found = devices.weighted_quantiles(draws, weights, (0.1, 0.25, 0.4375, 0.75, 0.99))
    assert found[:, 0].tolist() == pytest.approx([0, 0, 0.5, 1.5, 2])


def test_a_single_draw_is_every_quantile():
    found = devices.weighted_quantiles(torch.tensor([[3.0]]), torch.ones(1))
    assert (found == 3).all()


def quantiles(*columns):
    """Each column: the 90 % interval; the others nested about its middle."""
    halves = [side * level / 0.9 for side in (-0.5, 0.5) for level in devices.LEVELS]
    rows = [[(lo + hi) / 2 + half * (hi - lo) for lo, hi in columns] for half in halves]
    return torch.tensor(rows, dtype=torch.float64)


def test_a_predictor_is_included_where_its_90_percent_interval_excludes_0():
    found = quantiles((0.1, 2), (-1, 1), (-2, -0.1), (0, 1))
    assert devices.included(found).tolist() == [True, False, True, False]  # an end at 0 covers it


def test_inclusion_rates_by_hand():
    chosen = torch.tensor([True, False, True, False, False])
    active = torch.tensor([True, True, False, False, False])
    assert devices.inclusion_rates(chosen, active) == (0.5, pytest.approx(1 / 3))
    assert math.isnan(devices.inclusion_rates(chosen, torch.ones(5, dtype=torch.bool))[1])


def test_coverage_by_level():
    found = quantiles((-1, 1))
    truth = torch.tensor([0.95])
    assert [bool(devices.covered(found, level, truth)) for level in devices.LEVELS] == [False, False, True, True]


def test_the_report_of_a_device():
    facts = {"theta": np.array([[1.0, 0.0, 0.0]]), "active": np.array([True, False, False])}
    mean, positive = torch.tensor([1.05, 0.0, 1.0]), torch.tensor([1.0, 0.5, 0.9])
    rows = list(devices.report(mean, quantiles((0.1, 2), (-1, 1), (0.5, 1.5)), positive, facts, 0))
    found = {(m.metric, m.step): m.value for m in rows}
    assert found["included", 0] == 2
    assert found["correct_inclusion", 0] == 1
    assert found["false_inclusion", 0] == 0.5
    assert found["coverage_90", 0] == pytest.approx(2 / 3)
    assert found["theta_low", 2] == pytest.approx(0.5)
    assert found["theta_positive", 1] == 0.5
    assert found["smallest_z", 0] == pytest.approx(1.05 / 1.9 * 2 * 1.6449, rel=1e-6)


def test_a_device_that_took_no_part_reports_nothing():
    nothing = torch.zeros(len(devices.QUANTILES), 2)
    assert list(devices.report(nothing[0], nothing, nothing[0], {}, 0)) == []
