"""Cutting a client's own samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.data.assignment import Assignment
from fedrepro.data.preparation import INSIDE, ordered, shuffled
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import all_rows, held, rng, sizes_of

TWO = Assignment({"train": [np.arange(10), np.arange(100, 105)]}, groups=["a", "b"])


def test_head_and_tail_of_a_series():
    found = ordered(TWO, rng(), train=0.6, test=0.4)
    assert held(found) == [[0, 1, 2, 3, 4, 5], [100, 101, 102]]
    assert held(found, "test") == [[6, 7, 8, 9], [103, 104]]
    assert found.of == {"test": "train"}
    assert list(found.groups) == ["a", "b"]


def test_order_is_that_of_the_data_whoever_dealt_it():
    found = ordered(Assignment({"train": [np.array([7, 3, 9, 1])]}), rng(), train=0.5, test=0.5)
    assert (held(found), held(found, "test")) == ([[1, 3]], [[7, 9]])


def test_a_random_cut_in_seventy_ten_twenty():
    found = shuffled(
        Assignment({"train": [np.arange(500), np.arange(500, 600)]}), rng(), train=0.7, validation=0.1, test=0.2
    )
    assert [sizes_of(found, name) for name in ("train", "validation", "test")] == [[350, 70], [50, 10], [100, 20]]
    assert all_rows(found, "train", "validation", "test") == list(range(600))
    assert set(found.rows["test"][0]) <= set(range(500))
    assert found.of == {"validation": "train", "test": "train"}
    assert held(found)[0] != sorted(held(found)[0])
    assert 200 < np.mean(found.rows["test"][0]) < 300  # from everywhere, not the end


@pytest.mark.parametrize(
    ("size", "cut"), [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (2, 0, 1)), (5, (4, 0, 1)), (8, (6, 0, 2)), (15, (11, 1, 3))]
)
def test_halves_round_up(size, cut):
    """0.7 and 0.8 of the way: of 5 samples at 3.5 and 4, of 15 at 10.5 and 12."""
    found = shuffled(Assignment({"train": [np.arange(size)]}), rng(), train=0.7, validation=0.1, test=0.2)
    assert tuple(sizes_of(found, name)[0] for name in ("train", "validation", "test")) == cut


@pytest.mark.parametrize("name", INSIDE)
def test_all_for_training_is_all_for_training(name):
    found = INSIDE[name](TWO, rng(), train=1.0)
    assert all_rows(found) == all_rows(TWO)
    assert set(found.rows) == {"train"}


def test_a_global_test_set_stays_beside_a_validation_cut():
    data = Assignment({"train": [np.arange(4)], "test": [np.arange(3)]})
    found = ordered(data, rng(), train=0.5, validation=0.5)
    assert (held(found), held(found, "validation"), held(found, "test")) == ([[0, 1]], [[2, 3]], [[0, 1, 2]])
    assert found.of == {"validation": "train"}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize(
    "parts",
    [
        {"train": 0.7, "test": 0.2},
        {"train": 1.2, "test": -0.2},
        {"train": 0.0, "test": 1.0},
        {"train": math.nan, "test": 0.2},
        {"train": 0.8, "validation": math.nan, "test": 0.2},
    ],
)
def test_parts_that_are_no_parts_are_refused(name, parts):
    with pytest.raises(UserError, match=r"^inside: train must be above 0, no part negative, and their sum 1: train = "):
        INSIDE[name](TWO, rng(), **parts)


def test_a_client_that_would_have_nothing_to_learn_from_is_refused():
    with pytest.raises(UserError, match="client 1 has 1 samples, too few to leave one for training"):
        ordered(Assignment({"train": [np.arange(9), np.arange(1)]}), rng(), train=0.3, test=0.7)


def test_a_data_set_with_a_test_set_of_its_own_is_not_cut_for_another():
    data = Assignment({"train": [np.arange(4)], "test": [np.arange(3)]})
    with pytest.raises(UserError, match="the data set has a test set of its own; load it pooled"):
        shuffled(data, rng(), train=0.5, test=0.5)
