"""Roughness against numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.core.metrics import roughness


def test_any_quadratic_trend_has_no_roughness():
    t = np.arange(30.0)
    assert roughness(3 - 0.2 * t + 0.01 * t**2) == pytest.approx(0, abs=1e-12)


def test_independent_noise_has_its_deviation_as_roughness():
    noise = np.random.default_rng(0).normal(0, 0.3, 20_000)
    trend = 2 * np.exp(-np.arange(20_000) / 500)
    assert roughness(noise + trend) == pytest.approx(0.3, rel=0.02)


def test_roughness_by_hand():
    # 0, 0, 1, 0, 0 has third differences −3, 3: √(9/20)
    assert roughness(np.array([0.0, 0, 1, 0, 0])) == pytest.approx(math.sqrt(9 / 20), rel=1e-14)
    assert math.isnan(roughness(np.zeros(4)))
