"""Dirichlet shares over all classes."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from fedrepro.data.partitions.dirichlet import REDRAWS, _draw, dirichlet
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, measured, rng, sizes_of

TEN = labelled([600] * 10, test=4)


def test_everything_is_dealt_and_the_test_set_is_global():
    found = dirichlet(TEN, rng(), clients=10, alpha=0.5)
    assert all_rows(found) == list(range(6000))
    assert held(found, "test") == [[0, 1, 2, 3]]


def test_a_large_alpha_deals_evenly_and_a_small_one_does_not():
    even = counts(TEN, dirichlet(TEN, rng(), clients=10, alpha=100.0))
    assert np.abs(even - 60).max() < 30  # sd of 600 · Beta(100, 900) is 5.7
    skewed = counts(TEN, dirichlet(TEN, rng(), clients=10, alpha=0.1))
    share_of_largest = (skewed.max(axis=1) / skewed.sum(axis=1)).mean()
    assert share_of_largest > 0.5
    assert (skewed == 0).mean() > 0.2


def test_shares_have_the_law_of_a_dirichlet_draw():
    """No client is full before the first class: its shares are Dir(α), with variance (1/L)(1 − 1/L)/(αL + 1)."""
    shares = np.array([_draw(np.array([10**6]), rng(s), 5, 0.5)[0] / 10**6 for s in range(800)])
    assert np.allclose(shares.mean(axis=0), 0.2, atol=0.04)
    assert shares.var() == pytest.approx(0.2 * 0.8 / 3.5, rel=0.1)


def test_a_client_with_its_share_of_everything_gets_no_more():
    for seed in range(50):
        held_so_far = np.zeros(4)
        for row in _draw(np.full(6, 100), rng(seed), 4, 0.3):
            assert not row[held_so_far >= 150].any()
            held_so_far += row
        assert held_so_far.sum() == 600


def test_samples_of_a_class_are_dealt_at_random():
    data = labelled([400])
    firsts = [np.mean(dirichlet(data, rng(s), clients=2, alpha=50.0).rows["train"][0]) for s in range(20)]
    assert np.mean(firsts) == pytest.approx(199.5, abs=10)  # not the first by position


def test_draws_are_repeated_until_the_smallest_is_large_enough():
    free = min(min(sizes_of(dirichlet(TEN, rng(s), clients=30, alpha=0.1, minimum=0))) for s in range(20))
    bound = min(min(sizes_of(dirichlet(TEN, rng(s), clients=30, alpha=0.1, minimum=20))) for s in range(20))
    assert 1 <= free < 20 <= bound


def test_a_single_client_holds_all():
    assert sizes_of(dirichlet(TEN, rng(), clients=1, alpha=0.5)) == [6000]


def test_classes_without_samples_do_no_harm():
    found = dirichlet(labelled([50, 0, 50, 0]), rng(), clients=3, alpha=0.5, minimum=5)
    assert all_rows(found) == list(range(100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": 10, "alpha": 0.0}, r"^dirichlet: alpha = 0\.0: must be above 0 and finite$"),
        ({"clients": 10, "alpha": -1.0}, r"alpha = -1\.0: must be above 0"),
        ({"clients": 10, "alpha": math.nan}, r"alpha = nan: must be above 0"),
        ({"clients": 10, "alpha": math.inf}, r"alpha = inf: must be above 0"),
        ({"clients": 0, "alpha": 0.5}, r"^dirichlet: clients = 0: must be at least 1$"),
        ({"clients": 6001, "alpha": 0.5}, r"clients = 6001: there are only 6000 training samples$"),
        ({"clients": 601, "alpha": 0.5}, r"minimum = 10: 601 clients share only 6000 samples$"),
    ],
)
def test_impossible_requests_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        dirichlet(TEN, rng(), **options)


def test_a_minimum_that_no_draw_reaches_ends_after_a_bounded_number_of_draws(monkeypatch):
    draws = []
    module = importlib.import_module("fedrepro.data.partitions.dirichlet")
    monkeypatch.setattr(module, "_draw", lambda *a: draws.append(1) or _draw(*a))
    message = r"minimum = 600: not reached in 2000 draws with alpha = 0\.01 and 10 clients; the best draw left the "
    with pytest.raises(UserError, match=message + r"smallest client \d+$"):
        dirichlet(TEN, rng(), clients=10, alpha=0.01, minimum=600)
    assert len(draws) == REDRAWS == 2000


def test_a_regression_has_no_classes():
    with pytest.raises(UserError, match="dirichlet: needs a class for every sample"):
        dirichlet(measured(50), rng(), clients=2, alpha=0.5)
