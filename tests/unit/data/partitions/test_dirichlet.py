"""Dirichlet shares, over all classes and inside super-clusters."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

from fedrepro.data.partitions.dirichlet import REDRAWS, _draw, dirichlet
from fedrepro.errors import UserError
from fedrepro.studies.sa.partitions.super_cluster_dirichlet import CLUSTERS, clients_by_cluster, super_cluster_dirichlet
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
    """Of the first class nobody is full yet: its shares are Dir(α), with variance (1/L)(1 − 1/L)/(αL + 1)."""
    shares = np.array([_draw(np.array([10**6]), rng(s), 5, 0.5)[0] / 10**6 for s in range(800)])
    assert np.allclose(shares.mean(axis=0), 0.2, atol=0.04)
    assert shares.var() == pytest.approx(0.2 * 0.8 / 3.5, rel=0.1)


def test_who_holds_its_share_of_everything_gets_no_more():
    for seed in range(50):
        held_so_far = np.zeros(4)
        for row in _draw(np.full(6, 100), rng(seed), 4, 0.3):
            assert not row[held_so_far >= 150].any()
            held_so_far += row
        assert held_so_far.sum() == 600


def test_samples_of_a_class_are_dealt_at_random():
    data = labelled([400])
    firsts = [np.mean(dirichlet(data, rng(s), clients=2, alpha=50.0).rows["train"][0]) for s in range(20)]
    assert np.mean(firsts) == pytest.approx(199.5, abs=10)  # not the first of them by position


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
    module = importlib.import_module("fedrepro.data.partitions.dirichlet")  # the package has the function by this name
    monkeypatch.setattr(module, "_draw", lambda *a: draws.append(1) or _draw(*a))
    message = r"minimum = 600: not reached in 2000 draws with alpha = 0\.01 and 10 clients; the best draw left the "
    with pytest.raises(UserError, match=message + r"smallest client \d+$"):
        dirichlet(TEN, rng(), clients=10, alpha=0.01, minimum=600)
    assert len(draws) == REDRAWS == 2000


def test_a_regression_has_no_classes():
    with pytest.raises(UserError, match="dirichlet: needs a class for every sample"):
        dirichlet(measured(50), rng(), clients=2, alpha=0.5)


# --- super-clusters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("cifar10", [4, 6]), ("stl10", [3, 7]), ("fashion_mnist", [3, 4, 3]), ("cifar100", [4, 7, 79, 6, 4])],
)
def test_the_clusters_cover_every_class_once(name, sizes):
    assert [len(cluster) for cluster in CLUSTERS[name]] == sizes
    assert sorted(c for cluster in CLUSTERS[name] for c in cluster) == list(range(sum(sizes)))


def test_clusters_as_the_cited_code_has_them():
    assert CLUSTERS["cifar10"] == ((0, 1, 8, 9), (2, 3, 4, 5, 6, 7))
    assert CLUSTERS["stl10"][0] == (2, 8, 9)
    assert CLUSTERS["fashion_mnist"] == ((0, 1, 3), (2, 4, 6, 8), (5, 7, 9))
    assert CLUSTERS["cifar100"][0] == (0, 53, 82, 83)
    assert CLUSTERS["cifar100"][1] == (1, 43, 51, 54, 62, 70, 92)
    assert CLUSTERS["cifar100"][3:] == ((23, 30, 67, 69, 73, 95), (47, 52, 59, 96))


@pytest.mark.parametrize(("name", "ceilings"), [("cifar10", [5, 6]), ("stl10", [5, 6]), ("cifar100", [2, 2, 3, 2, 2])])
def test_ten_clients_are_the_ceilings_less_one(name, ceilings):
    drawn = {tuple(clients_by_cluster(name, 10, rng(s)).tolist()) for s in range(80)}
    assert drawn == {tuple(np.array(ceilings) - np.eye(len(ceilings), dtype=int)[i]) for i in range(len(ceilings))}


def test_ten_clients_of_fashion_mnist_are_three_four_three():
    assert {tuple(clients_by_cluster("fashion_mnist", 10, rng(s)).tolist()) for s in range(9)} == {(3, 4, 3)}


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("clients", [5, 6, 7, 23, 100])
def test_every_cluster_has_clients_and_they_sum_up(name, clients):
    shared = clients_by_cluster(name, clients, rng())
    assert shared.sum() == clients
    assert shared.min() >= 1


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_client_draws_on_one_cluster(name):
    table = CLUSTERS[name]
    data = labelled([100] * sum(map(len, table)), test=3)
    found = super_cluster_dirichlet(data, rng(), clients=10, clusters=name)
    assert all_rows(found) == list(range(len(data.train)))
    assert min(sizes_of(found)) >= 15
    assert held(found, "test") == [[0, 1, 2]]
    for client, group in zip(counts(data, found), found.groups, strict=True):
        assert set(np.flatnonzero(client)) <= set(table[int(group.removeprefix("cluster ")) - 1])
    assert list(dict.fromkeys(found.groups)) == [f"cluster {i + 1}" for i in range(len(table))]


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([50] * 10, {"clients": 10, "clusters": "cifar"}, r"clusters = 'cifar' is unknown; did you mean 'cifar10'\?$"),
        ([50] * 10, {"clients": 10, "clusters": "cifar100"}, "'cifar100' are of 100 classes, the data set has 10$"),
        ([50] * 9 + [0], {"clients": 10, "clusters": "cifar10"}, "class 9 has no training samples$"),
        ([50] * 10, {"clients": 1, "clusters": "stl10"}, "clients = 1: there are 2 clusters, each needs one$"),
        ([50] * 10, {"clients": 10, "clusters": "stl10", "alpha": 0.0}, r"cluster 1: alpha = 0\.0: must be above 0"),
        (
            [9] * 10,
            {"clients": 10, "clusters": "cifar10"},
            "1: minimum = 15: [45] clients share only 36 samples$",
        ),
    ],
)
def test_clusters_that_do_not_fit_are_refused(sizes, options, message):
    with pytest.raises(UserError, match=message):
        super_cluster_dirichlet(labelled(sizes), rng(), **options)
