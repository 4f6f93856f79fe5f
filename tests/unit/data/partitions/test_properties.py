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
from fedrepro.data.assignment import Assignment, content_sha256
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.partitions.by_client import by_client
from fedrepro.data.partitions.dirichlet import dirichlet
from fedrepro.data.partitions.iid import iid
from fedrepro.data.partitions.k_classes import k_classes
from fedrepro.data.preparation import INSIDE
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.partitions.equal_devices import equal_devices
from fedrepro.studies.omni.partitions.omni_skewed import omni_skewed
from fedrepro.studies.omni.partitions.omni_stratified import omni_stratified
from tests.unit.data.partitions.builders import all_rows, counts, labelled, rng, sizes_of

seeds = st.integers(0, 2**32)
clients = st.integers(1, 12)
data_sets = st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any).map(labelled)


def disjoint(rows: list[int], total: int) -> bool:
    return len(set(rows)) == len(rows) and set(rows) <= set(range(total))


def possible(make, data: Dataset, seed: int, **options) -> Assignment | None:
    """The federation, or None after a UserError; any other error fails the test."""
    try:
        found = make(data, rng(seed), **options)
    except UserError:
        return None
    assert content_sha256({0: found}) == content_sha256({0: make(data, rng(seed), **options)})
    assert min(sizes_of(found)) >= 1
    assert len(found.groups) in (0, len(found.rows["train"]))
    return found


@given(data_sets, clients, seeds)
def test_iid(data, clients, seed):
    found = possible(iid, data, seed, clients=clients)
    assert (found is None) == (clients > len(data.train))
    if found:
        assert all_rows(found) == list(range(len(data.train)))
        assert len(sizes_of(found)) == clients
        assert np.ptp(sizes_of(found)) <= 1


@given(data_sets, clients, seeds)
def test_equal_devices(data, clients, seed):
    found = possible(equal_devices, data, seed, clients=clients)
    assert (found is None) == (clients > len(data.train))
    if found:
        assert disjoint(all_rows(found), len(data.train))
        assert sizes_of(found) == [len(data.train) // clients] * clients


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


@given(data_sets, st.integers(1, 6), seeds, st.integers(1, 30), st.integers(1, 30))
def test_omni_nodes(data, clients, seed, samples, test_samples):
    for make in (omni_stratified, omni_skewed):
        found = possible(make, data, seed, clients=clients, samples=samples, test_samples=test_samples)
        if found:
            assert disjoint(all_rows(found, "train", "test"), len(data.train))
            assert min(sizes_of(found, "test")) >= 1
        if found and make is omni_stratified:
            each = min(samples + test_samples, len(data.train) // clients)
            table = counts(data, found) + counts(data, found, "test")
            assert (table.sum(axis=1) == each).all()
            assert np.ptp(table, axis=0).max() <= 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), seeds)
def test_by_client(sizes, seed):
    owner = rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    data = Dataset("real", Split(np.zeros((len(owner), 1)), np.zeros(len(owner)), client=owner))
    found = by_client(data, rng(seed))
    assert all(set(owner[rows]) == {client} for client, rows in enumerate(found.rows["train"]))
    assert sizes_of(found) == sizes
    assert disjoint(all_rows(found), len(owner))


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
    """Neither numpy's nor python's global generator moves, and the data set is left unchanged."""
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
