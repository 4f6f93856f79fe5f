"""Properties of the partitions for any labels, sizes and seeds (hypothesis)."""

from __future__ import annotations

import importlib
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.core import parts
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.partitions.by_client import by_client
from fedrepro.data.partitions.dirichlet import dirichlet
from fedrepro.data.partitions.iid import iid
from fedrepro.data.partitions.k_classes import k_classes
from fedrepro.data.preparation import INSIDE
from tests.unit.data.partitions.builders import (
    all_rows,
    counts,
    data_sets,
    disjoint,
    labelled,
    possible,
    rng,
    seeds,
    sizes_of,
)

clients = st.integers(1, 12)


@given(data_sets, clients, seeds)
def test_iid(data, clients, seed):
    found = possible(iid, data, seed, clients=clients)
    assert (found is None) == (clients > len(data.train))
    if found:
        assert all_rows(found) == list(range(len(data.train)))
        assert len(sizes_of(found)) == clients
        assert np.ptp(sizes_of(found)) <= 1


@given(data_sets, st.integers(1, 5), seeds, st.floats(0.2, 1e4), st.integers(0, 5))
def test_dirichlet(data, clients, seed, alpha, minimum):
    found = possible(dirichlet, data, seed, clients=clients, alpha=alpha, minimum=minimum)
    if found:
        assert all_rows(found) == list(range(len(data.train)))
        assert len(sizes_of(found)) == clients
        assert min(sizes_of(found)) >= minimum
    else:
        assert clients > 1 or minimum > len(data.train)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8).map(labelled), clients, st.integers(1, 8), seeds)
def test_k_classes(data, clients, classes, seed):
    found = possible(k_classes, data, seed, clients=clients, classes=classes)
    if found:
        table = counts(data, found)
        assert disjoint(all_rows(found), len(data.train))
        assert len(set(sizes_of(found))) == 1
        assert ((table > 0).sum(axis=1) == classes).all()
        assert np.ptp((table > 0).sum(axis=0)) <= 1
        assert all(np.ptp(mine[mine > 0]) == 0 for mine in table)
    else:
        most = -(-clients * classes // data.outputs)  # clients that hold a class
        assert classes > data.outputs or clients * classes < data.outputs or np.bincount(data.train.y).min() < most


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), seeds, st.integers(0, 9), st.integers(0, 6))
def test_by_client(sizes, seed, wanted, minimum):
    owner = rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    data = Dataset("real", Split(np.zeros((len(owner), 1)), np.zeros(len(owner)), client=owner))
    large = sorted((s for s in sizes if s >= minimum), reverse=True)
    for choose in ("largest", "random", "first"):
        found = possible(by_client, data, seed, clients=wanted, choose=choose, minimum=minimum)
        assert (found is None) == (not 1 <= wanted <= len(large))
        if found:
            assert all(len(set(owner[rows])) == 1 for rows in found.rows["train"])
            assert all(len(rows) == sizes[owner[rows[0]]] >= minimum for rows in found.rows["train"])
            assert disjoint(all_rows(found), len(owner))
        if found and choose == "largest":
            assert sorted(sizes_of(found), reverse=True) == large[:wanted]


@given(data_sets, st.integers(1, 4), seeds, st.sampled_from(sorted(INSIDE)), st.integers(1, 9), st.integers(0, 9))
def test_cuts_inside_lose_nothing_and_share_nothing(data, clients, seed, name, train, validation):
    shares = {"train": train / 18, "validation": validation / 18, "test": 1 - train / 18 - validation / 18}
    dealt = possible(iid, data, seed, clients=clients)
    if dealt is None:
        return
    found = possible(lambda _, r, **o: INSIDE[name](dealt, r, **o), data, seed, **shares)
    if found:
        for client, whole in enumerate(dealt.rows["train"]):
            mine = {split: rows[client] for split, rows in found.rows.items()}
            assert sorted(np.concatenate(list(mine.values()))) == sorted(whole)
            assert all(abs(len(rows) - shares[split] * len(whole)) <= 1 for split, rows in mine.items())


@pytest.mark.parametrize("name", parts.modules("partitions"))
def test_a_partition_draws_only_from_its_stream(name):
    """The global generators of numpy and python and the data set stay unchanged."""
    setting = next(iter(importlib.import_module(parts.module_of("partitions", name)).EXAMPLES.values()))
    np.random.seed(1)  # noqa: NPY002
    states = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    made = 0
    for classes in (10, 62):
        data = labelled([60] * classes)
        data = replace(data, train=replace(data.train, client=np.arange(len(data.train)) % 20))
        before = data.train.y.copy()
        made += possible(parts.partition(name), data, 0, **setting) is not None
        assert np.array_equal(data.train.y, before)
    assert made
    assert np.array_equal(np.random.get_state()[1], states[0])  # noqa: NPY002
    assert random.getstate() == states[1]
