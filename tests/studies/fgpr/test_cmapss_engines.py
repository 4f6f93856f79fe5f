"""Engines' signals scaled one by one."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.core import parts
from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError


def load(**parameters):
    return parts.dataset("cmapss_engines").load(Source(np.random.default_rng(0), mode="standin"), **parameters)


def test_every_engine_has_mean_0_and_variance_1_and_time_in_hundreds():
    data = load()
    raw = parts.dataset("cmapss").load(Source(np.random.default_rng(0), mode="standin"), sensors=[2, 7])
    assert data.train.y.shape == (len(raw.train), 2)
    np.testing.assert_allclose(data.train.x, raw.train.x / 100)
    for k in (0, 50, 99):
        own = data.train.client == k
        np.testing.assert_allclose(data.train.y[own].mean(0), 0, atol=1e-10)
        np.testing.assert_allclose(data.train.y[own].std(0, ddof=1), 1)
        correlation = np.corrcoef(data.train.y[own][:, 0], raw.train.y[own][:, 0])[0, 1]
        assert correlation == pytest.approx(1)
    assert data.facts["sensors"].tolist() == [2, 7]


def test_the_share_of_life_ends_at_1():
    data = load(time="life", sensors=2)
    assert data.train.y.ndim == 1
    for k in (0, 99):
        own = data.train.x[data.train.client == k, 0]
        assert own[-1] == 1
        assert own[0] == pytest.approx(1 / len(own))


def test_an_unknown_time_is_an_error():
    with pytest.raises(UserError, match="'days'"):
        load(time="days")
