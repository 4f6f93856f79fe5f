"""The nodes of Omni-Fedge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.errors import UserError
from fedrepro.studies.omni.partitions.omni_skewed import _thin, omni_skewed
from fedrepro.studies.omni.partitions.omni_stratified import cut as cut_nodes
from fedrepro.studies.omni.partitions.omni_stratified import omni_stratified
from tests.unit.data.partitions.builders import (
    all_rows,
    counts,
    data_sets,
    disjoint,
    labelled,
    measured,
    possible,
    rng,
    seeds,
    sizes_of,
)

POOL = labelled([7000] * 10)
BOTH = pytest.mark.parametrize("make", [omni_stratified, omni_skewed])


def both(data, found) -> np.ndarray:
    return counts(data, found) + counts(data, found, "test")


def test_the_stratified_nodes_of_the_table():
    found = omni_stratified(POOL, rng())
    assert sizes_of(found) == [622] * 5
    assert sizes_of(found, "test") == [778] * 5
    assert set(both(POOL, found).ravel()) == {140}
    assert np.abs(counts(POOL, found) - 62.2).max() < 1
    assert found.of == {"test": "train"}


def test_uneven_classes_stay_in_proportion():
    data = labelled([300, 150, 50])
    found = omni_stratified(data, rng(), clients=3, samples=40, test_samples=50)
    assert np.abs(both(data, found) - [54, 27, 9]).max() <= 1
    assert np.abs(counts(data, found) - [24, 12, 4]).max() <= 1


@pytest.mark.parametrize(("options", "dealt"), [({}, 5600), ({"samples": 311, "test_samples": 389}, 2800)])
def test_skewed_nodes_keep_a_quarter_on_average_and_half_at_most(options, dealt):
    """A node is dealt four times its size (40 % and 20 % of the pool over 5 nodes), a tenth of each class."""
    kept = np.concatenate([both(POOL, omni_skewed(POOL, rng(s), **options)) for s in range(8)])
    assert kept.max() <= 0.5 * dealt / 10
    assert kept.sum(axis=1).mean() == pytest.approx(dealt / 4, rel=0.1)  # 3.5 standard deviations of the mean


def test_fractions_kept_are_uniform_up_to_a_half():
    labels = np.arange(10_000) % 10
    draws = [np.bincount(_thin(labels, labels, r)[0], minlength=10) for r in [rng()] for _ in range(300)]
    kept = np.sort(np.ravel(draws)) / 1000
    assert np.abs(kept - np.linspace(0, 0.5, len(kept))).max() < 0.5 * 1.63 / len(kept) ** 0.5  # Kolmogorov's 1 %


@pytest.mark.parametrize(("node", "cut"), [(1515, (673, 842)), (745, (331, 414)), (1400, (622, 778))])
def test_training_and_test_samples_of_the_tables_nodes(node, cut):
    found = cut_nodes([np.arange(node)], [], np.arange(node) % 10, rng(), 622, 778, 0, "x")
    assert (*sizes_of(found), *sizes_of(found, "test")) == cut


def test_validation_samples_are_beside_those_of_the_table():
    found = omni_stratified(POOL, rng(), validation=0.3)
    assert [sizes_of(found, split) for split in ("train", "test", "validation")] == [[622] * 5, [778] * 5, [187] * 5]
    assert np.abs(counts(POOL, found, "validation") - 18.7).max() < 1
    assert found.of == {"validation": "train", "test": "train"}


def test_validation_samples_have_the_classes_of_their_node():
    found = omni_skewed(POOL, rng(), validation=0.5)
    mine, held = (counts(POOL, found, split) for split in ("train", "validation"))
    assert held.sum(axis=1).tolist() == [round(0.5 * n) for n in mine.sum(axis=1)]
    assert np.abs(held - 0.5 * mine).max() <= 1.5
    assert np.ptp(mine, axis=1).min() > 50  # nodes whose classes differ


@BOTH
def test_a_pool_that_is_too_small_is_dealt_out_whole(make):
    data = labelled([500] * 10)
    found = make(data, rng())
    got = np.array(sizes_of(found)) + sizes_of(found, "test")
    rows = all_rows(found, "train", "test")
    assert len(set(rows)) == len(rows)
    if make is omni_stratified:
        assert got.tolist() == [1000] * 5
        assert sizes_of(found) == [444] * 5
    else:
        assert got.mean() == pytest.approx(250, rel=0.2)


def test_skewed_nodes_are_drawn_again_if_one_would_be_empty():
    """12 samples per node; a draw often keeps one or none of them."""
    data = labelled([60, 60])
    found = [omni_skewed(data, rng(s), clients=10) for s in range(20)]
    assert min(min(sizes_of(f)) for f in found) >= 1
    assert min(min(sizes_of(f, "test")) for f in found) >= 1


@BOTH
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (labelled([50] * 4, test=3), {}, "the data set has a test set of its own; load it pooled$"),
        (labelled([50] * 4), {"clients": 201}, "clients = 201: there are only 200 training samples$"),
        (labelled([50] * 4), {"clients": 0}, "clients = 0: must be at least 1$"),
        (labelled([50] * 4), {"samples": 0}, "samples and test_samples must be at least 1: 0 and 778$"),
        (labelled([50] * 4), {"samples": 0, "test_samples": 0}, "must be at least 1: 0 and 0$"),
        (labelled([50] * 4), {"test_samples": 0}, "samples and test_samples must be at least 1: 622 and 0$"),
        (
            labelled([50] * 4),
            {"clients": 200},
            r"(a node of 1 samples cannot have both|a node of 1 samples kept less than two)",
        ),
        (measured(50), {}, "needs a class for every sample"),
    ],
)
def test_impossible_requests_are_refused(make, data, options, message):
    with pytest.raises(UserError, match=rf"^{make.__name__}: .*{message}"):
        make(data, rng(), **options)


@given(data_sets, st.integers(1, 6), seeds, st.integers(1, 30), st.integers(1, 30))
def test_no_sample_of_any_data_is_in_two_nodes(data, clients, seed, samples, test_samples):
    for make in (omni_stratified, omni_skewed):
        found = possible(make, data, seed, clients=clients, samples=samples, test_samples=test_samples)
        more = possible(make, data, seed, clients=clients, samples=samples, test_samples=test_samples, validation=0.5)
        if more:
            assert disjoint(all_rows(more, "train", "validation", "test"), len(data.train))
        if found:
            assert disjoint(all_rows(found, "train", "test"), len(data.train))
            assert min(sizes_of(found, "test")) >= 1
        if found and make is omni_stratified:
            each = min(samples + test_samples, len(data.train) // clients)
            table = counts(data, found) + counts(data, found, "test")
            assert (table.sum(axis=1) == each).all()
            assert np.ptp(table, axis=0).max() <= 1
