"""NASA C-MAPSS FD001 on its real files: counts, known values and known drifts."""

from __future__ import annotations

import numpy as np
import pytest


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return np.corrcoef(a, b)[0, 1]


@pytest.fixture(scope="module")
def engines(real):
    return real("cmapss")


def test_cmapss_counts(engines):
    assert engines.kind == "real"
    assert engines.train.x.shape == (20631, 1)
    assert engines.train.y.shape == (20631, 21)
    lives = np.bincount(engines.train.client)
    assert len(lives) == 100
    assert (lives.min(), lives.max()) == (128, 362)
    assert engines.train.x[:192, 0].tolist() == list(range(1, 193))  # the first engine's life
    assert engines.train.client[191:193].tolist() == [0, 1]


def test_cmapss_first_row(engines):
    expected = [518.67, 641.82, 1589.70, 1400.60, 14.62, 21.61, 554.36, 2388.06, 9046.19, 1.30, 47.47, 521.66, 2388.02]
    expected += [8138.62, 8.4195, 0.03, 392, 2388, 100.00, 39.06, 23.4190]
    assert engines.train.y[0].tolist() == expected


def test_cmapss_sensors_that_never_change(engines):
    spread = np.ptp(engines.train.y, axis=0)
    assert (np.flatnonzero(spread == 0) + 1).tolist() == [1, 5, 10, 16, 18, 19]
    assert np.unique(engines.train.y[:, 5]).tolist() == [21.60, 21.61]
    assert np.isfinite(engines.train.y).all()


def test_cmapss_sensors_drift_towards_failure(engines):
    """From its first 30 cycles to its last 10, sensor 2 (a temperature) rises and sensor 7 (a pressure) falls, in every
    engine; the two speeds 9 and 14 go either way."""
    y, owner = engines.train.y, engines.train.client
    moved = np.array([y[owner == k][-10:].mean(0) - y[owner == k][:30].mean(0) for k in range(100)])
    assert (moved[:, 2 - 1] > 0).all()
    assert (moved[:, 7 - 1] < 0).all()
    for speed in (9, 14):
        assert 10 < (moved[:, speed - 1] > 0).sum() < 90
    assert correlation(moved[:, 9 - 1], moved[:, 14 - 1]) > 0.9


def test_cmapss_chosen_sensors_are_columns_of_all(real, engines):
    assert np.array_equal(real("cmapss", sensors=[2, 7]).train.y, engines.train.y[:, [1, 6]])
    assert np.array_equal(real("cmapss", sensors=2).train.y, engines.train.y[:, 1])
