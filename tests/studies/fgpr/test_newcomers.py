"""Clients that take part in training, and clients that join later."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.partitions.newcomers import newcomers
from tests.unit.data.partitions.builders import all_rows, held, rng, sizes_of


def owned(sizes) -> Dataset:
    client = np.repeat(np.arange(len(sizes)), sizes)
    return Dataset("synthetic", train=Split(np.zeros((len(client), 1)), np.zeros(len(client)), client=client))


def test_old_clients_hold_all_they_have_and_new_ones_half():
    data = owned([4, 6, 8, 10, 12])
    found = newcomers(data, rng(), old=3)
    assert sizes_of(found, "test")[:3] == [0, 0, 0]
    owners = [{int(data.train.client[row]) for row in rows} for rows in held(found)]
    assert all(len(owner) == 1 for owner in owners)
    order = [owner.pop() for owner in owners]
    assert sorted(order) == [0, 1, 2, 3, 4]
    for k, owner in enumerate(order):
        size = [4, 6, 8, 10, 12][owner]
        assert sizes_of(found)[k] == (size if k < 3 else size / 2)
        assert sizes_of(found, "test")[k] == (0 if k < 3 else size / 2)
    assert all_rows(found, "train", "test") == list(range(40))
    assert found.of == {"test": "train"}


def test_who_is_new_depends_on_the_stream():
    data = owned([2] * 20)
    first, again, other = (held(newcomers(data, rng(seed), old=10)) for seed in (0, 0, 1))
    assert first == again != other


def test_a_newcomer_with_two_samples_has_one_of_each():
    found = newcomers(owned([5, 2]), rng(1), old=1, train=0.9)
    assert min(sizes_of(found)) >= 1
    assert sizes_of(found, "test")[1] >= 1


@pytest.mark.parametrize("wrong", [{"old": 0}, {"old": 3}, {"old": 2, "new": 2}, {"old": 1, "train": 1.0}])
def test_wrong_numbers_are_an_error(wrong):
    with pytest.raises(UserError, match=r"^newcomers: "):
        newcomers(owned([4, 4, 4]), rng(), **wrong)
