"""Assignments: the file, the content hash, and dealing rows out."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data import assignment as files
from fedrepro.data.assignment import (
    Assignment,
    apportion,
    class_labels,
    in_proportion,
    rows_by_class,
    rows_by_owner,
)
from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import measured, rng

ASSIGNMENT = Assignment({"train": [np.array([4, 2]), np.array([], dtype=int), np.array([0])]}, groups=["a", "b", "a"])


def test_an_assignment_as_arrays():
    arrays = ASSIGNMENT.arrays()
    assert arrays["train/rows"].tolist() == [4, 2, 0]
    assert arrays["train/offsets"].tolist() == [0, 2, 2, 3]
    assert arrays["train/of"] == "train"
    assert arrays["groups"].tolist() == ["a", "b", "a"]


def test_what_is_saved_comes_back(tmp_path):
    cut = Assignment({"train": [np.arange(3)], "test": [np.arange(2)]}, of={"test": "train"})
    files.save(tmp_path / "f.npz", {0: ASSIGNMENT, 7: cut})
    loaded = files.load(tmp_path / "f.npz")
    assert set(loaded) == {0, 7}
    assert {k: v.tolist() for k, v in loaded[0].items()} == {k: v.tolist() for k, v in ASSIGNMENT.arrays().items()}
    assert loaded[7]["test/offsets"].tolist() == [0, 2]
    assert loaded[7]["test/of"] == "train"
    assert loaded[7]["train/rows"].dtype == np.int64


def test_the_hash_is_of_who_holds_what():
    one, two = Assignment({"train": [np.array([0, 1]), np.array([2])]}), Assignment({"train": [[0, 1], [2]]})
    known = files.content_sha256({0: one, 1: ASSIGNMENT})
    assert files.content_sha256({1: ASSIGNMENT, 0: two}) == known
    others = [
        {0: one},
        {1: one, 0: ASSIGNMENT},
        {0: Assignment({"train": [[0], [1, 2]]}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[1, 0], [2]]}), 1: ASSIGNMENT},
        {0: Assignment({"test": [[0, 1], [2]]}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[0, 1], [2]]}, of={"train": "test"}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[0, 1], [2]]}, groups=["x", "y"]), 1: ASSIGNMENT},
    ]
    assert len({known, *map(files.content_sha256, others)}) == 1 + len(others)


def test_the_hash_of_a_known_federation_stays_what_it_is():
    """Results identify a federation by this hash; another hash would invalidate all earlier results."""
    known = Assignment({"train": [[0, 2], [1]], "test": [[3]]}, ["a", "b"], of={"test": "train"})
    assert files.content_sha256({0: known}) == "899c35a5093b909a596039aa8e1d50636dfaa40235ad351763d135c3c72ab631"


# --- dealing out ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        (10, [3, 4, 3], [3, 4, 3]),
        (7, [3, 4, 3], [2, 3, 2]),
        (200, [60, 100, 40], [60, 100, 40]),
        (1, [1, 1, 1], [1, 0, 0]),
        (3, [0.1, 0.1, 0.1], [1, 1, 1]),
        (0, [1, 2], [0, 0]),
    ],
)
def test_shares_in_whole_numbers(total, weights, parts):
    assert apportion(total, weights).tolist() == parts


def test_rows_of_each_class_in_random_order():
    labels = np.array([1, 0, 3, 1, 1, 0] * 20)
    rows = rows_by_class(labels, 5, rng())
    assert [sorted(mine.tolist()) for mine in rows] == [np.flatnonzero(labels == c).tolist() for c in range(5)]
    assert all(mine.tolist() != sorted(mine.tolist()) for mine in rows if len(mine))


def test_rows_of_each_owner_in_the_given_order():
    found = rows_by_owner(np.array([9, 8, 7, 6, 5]), np.array([2, 0, 2, 2, 0]), 4)
    assert [mine.tolist() for mine in found] == [[8, 5], [], [9, 7, 6], []]


def test_every_beginning_has_the_classes_in_proportion():
    labels = rng(1).permutation(np.repeat([0, 1, 4], [600, 300, 100]))
    order = in_proportion(labels, rng())
    assert sorted(order) == list(range(1000))
    for n in (10, 37, 500, 999):
        assert np.abs(np.bincount(labels[order[:n]], minlength=5) - n * np.array([0.6, 0.3, 0, 0, 0.1])).max() <= 1
    assert not np.array_equal(order, in_proportion(labels, rng(1)))


def test_a_rare_class_comes_neither_first_nor_last():
    assert in_proportion(np.array([0] * 100 + [1]), rng()).tolist().index(100) == 50


def test_of_classes_of_one_size_none_comes_first_always():
    firsts = {int(np.array([0, 1, 2])[in_proportion(np.array([0, 1, 2]), rng(s))[0]]) for s in range(30)}
    assert firsts == {0, 1, 2}


def test_targets_that_are_no_classes_are_refused():
    with pytest.raises(UserError, match=r"^x: needs a class for every sample; the targets of this data set are not"):
        class_labels(measured(3), "x")
    several = Split(np.zeros((3, 1)), np.zeros((3, 2), dtype=int))
    with pytest.raises(UserError, match="x: needs a class for every sample"):
        class_labels(Dataset("real", several, outputs=2), "x")
    for labels in ([0, 1, 2], [-1, 0, 1]):
        with pytest.raises(UserError, match=rf"x: classes must be 0 … 1: labels are {min(labels)} … {max(labels)}$"):
            class_labels(Dataset("real", Split(np.zeros((3, 1)), np.array(labels)), outputs=2), "x")
