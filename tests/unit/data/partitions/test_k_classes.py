"""k classes per client."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.partitions.k_classes import choose_classes, k_classes
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, measured, rng, sizes_of


def test_the_devices_of_femnist_skewed():
    """10 letters, 5 on each of 100 devices, 500 images per device: 50 devices and 5,000 images per letter."""
    data = labelled([5000] * 10, test=2)
    found = k_classes(data, rng(), clients=100, classes=5, samples=500)
    assert sizes_of(found) == [500] * 100
    table = counts(data, found)
    assert set(np.unique(table)) == {0, 100}
    assert ((table > 0).sum(axis=1) == 5).all()
    assert ((table > 0).sum(axis=0) == 50).all()
    assert all_rows(found) == list(range(50_000))
    assert held(found, "test") == [[0, 1]]


def test_as_many_samples_as_the_scarcest_class_allows():
    data = labelled([40, 100, 31, 100])  # every class at 2 of 4 clients: 15 of the third for each
    found = k_classes(data, rng(), clients=4, classes=2)
    assert sizes_of(found) == [30] * 4
    assert len(set(all_rows(found))) == 120


def test_a_remainder_goes_to_the_first_of_a_clients_classes():
    data = labelled([60] * 3)
    found = k_classes(data, rng(), clients=3, classes=2, samples=7)
    assert [sorted(c[c > 0].tolist()) for c in counts(data, found)] == [[3, 4]] * 3


@pytest.mark.parametrize(
    ("clients", "classes", "outputs"), [(100, 5, 10), (7, 3, 10), (4, 1, 3), (5, 6, 6), (30, 2, 62)]
)
def test_classes_are_chosen_without_repetition_and_evenly(clients, classes, outputs):
    for seed in range(20):
        chosen = choose_classes(rng(seed), clients, classes, outputs)
        assert chosen.shape == (clients, classes)
        assert all(len(set(mine)) == classes for mine in chosen.tolist())
        assert np.ptp(np.bincount(chosen.ravel(), minlength=outputs)) <= 1


def test_choices_are_random():
    """Two of four classes: a client may have any pair, and the next one not only the rest."""
    pairs = [tuple(map(tuple, np.sort(choose_classes(rng(s), 8, 2, 4)[:2], axis=1))) for s in range(200)]
    assert {first for first, _ in pairs} == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert any(set(first) & set(second) for first, second in pairs)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([9] * 4, {"clients": 4, "classes": 5}, r"^k_classes: classes = 5: the data set has 1 to 4$"),
        ([9] * 4, {"clients": 4, "classes": 0}, r"classes = 0: the data set has 1 to 4$"),
        ([9] * 4, {"clients": 1, "classes": 2}, r"1 clients of 2 classes do not cover all 4$"),
        ([9] * 4, {"clients": 37, "classes": 2}, r"clients = 37: there are only 36 training samples$"),
        ([9, 9, 0, 9], {"clients": 4, "classes": 2}, r"class 2 has no training samples$"),
        ([9, 9, 7, 9], {"clients": 4, "classes": 2, "samples": 8}, r"samples = 8: class 2 has 7, 8 are needed$"),
        ([9] * 4, {"clients": 4, "classes": 2, "samples": 1}, r"1 samples per client: too few for 2 classes"),
        ([9, 9, 1, 9], {"clients": 4, "classes": 2}, r"0 samples per client: too few"),
    ],
)
def test_impossible_requests_are_refused(sizes, options, message):
    with pytest.raises(UserError, match=message):
        k_classes(labelled(sizes), rng(), **options)


def test_a_regression_has_no_classes():
    with pytest.raises(UserError, match="k_classes: needs a class for every sample"):
        k_classes(measured(50), rng(), clients=2, classes=1)
