"""Dirichlet shares inside super-clusters."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.errors import UserError
from fedrepro.studies.sa.partitions.super_cluster_dirichlet import CLUSTERS, clients_by_cluster, super_cluster_dirichlet
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, rng, sizes_of


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
        (
            [50] * 10,
            {"clients": 10, "clusters": "cifar"},
            r"'cifar' is unknown; did you mean 'cifar10'\? \(or cifar100\)$",
        ),
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
