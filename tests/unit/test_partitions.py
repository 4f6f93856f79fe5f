"""Who holds what: the scheme that follows the data's own marks, its file, and its hash."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.datasets import Dataset, Split
from fedrepro.errors import UserError
from fedrepro.partitions import Assignment
from fedrepro.partitions import base as files
from fedrepro.partitions.by_client import by_client

RNG = np.random.default_rng(0)


def split(client=None, group=None, rows: int = 6) -> Split:
    columns = {"client": client, "group": group}
    return Split(np.zeros((rows, 1)), np.zeros(rows), **{k: np.array(v) for k, v in columns.items() if v is not None})


def held(assignment: Assignment, name: str = "train") -> list[list[int]]:
    return [rows.tolist() for rows in assignment.rows[name]]


# --- by_client --------------------------------------------------------------------------------------------------------


def test_each_client_holds_the_rows_marked_with_its_number():
    found = by_client(Dataset("real", train=split(client=[2, 0, 1, 0, 2, 2])), RNG)
    assert held(found) == [[1, 3], [2], [0, 4, 5]]
    assert list(found.groups) == []


def test_groups_are_the_clients_own():
    data = Dataset("real", train=split(client=[1, 0, 1, 0, 2, 2], group=[7, 3, 7, 3, 7, 7]))
    assert list(by_client(data, RNG).groups) == ["3", "7", "7"]


def test_test_and_validation_rows_follow_their_own_marks():
    data = Dataset(
        "real",
        train=split(client=[0, 1, 2, 2, 1, 0]),
        validation=split(client=[2, 2, 2], rows=3),
        test=split(client=[1, 0, 1], rows=3),
    )
    found = by_client(data, RNG)
    assert held(found, "validation") == [[], [], [0, 1, 2]]
    assert held(found, "test") == [[1], [0, 2], []]


def test_a_test_set_without_marks_is_everybodys():
    data = Dataset("real", train=split(client=[0, 1, 1, 0, 1, 1]), test=split(rows=4))
    assert held(by_client(data, RNG), "test") == [[0, 1, 2, 3]]


def test_a_gap_in_the_numbers_is_refused():
    with pytest.raises(UserError, match=r"numbered 0, 1, …: training samples have 0, 2$"):
        by_client(Dataset("real", train=split(client=[0, 2, 2, 0, 2, 2])), RNG)


def test_a_client_that_only_the_test_set_knows_is_refused():
    data = Dataset("real", train=split(client=[0, 1, 1, 0, 1, 1]), test=split(client=[0, 5, 1], rows=3))
    with pytest.raises(UserError, match=r"the test set has clients without training samples: 5$"):
        by_client(data, RNG)


def test_data_without_marks_is_refused():
    with pytest.raises(UserError, match="by_client: this data set does not say which client"):
        by_client(Dataset("real", train=split()), RNG)


# --- the file ---------------------------------------------------------------------------------------------------------

ASSIGNMENT = Assignment({"train": [np.array([4, 2]), np.array([], dtype=int), np.array([0])]}, groups=["a", "b", "a"])


def test_an_assignment_as_arrays():
    arrays = ASSIGNMENT.arrays()
    assert arrays["train/rows"].tolist() == [4, 2, 0]
    assert arrays["train/offsets"].tolist() == [0, 2, 2, 3]
    assert arrays["groups"].tolist() == ["a", "b", "a"]


def test_what_is_saved_comes_back(tmp_path):
    files.save(tmp_path / "f.npz", {0: ASSIGNMENT, 7: Assignment({"train": [np.arange(3)], "test": [np.arange(2)]})})
    loaded = files.load(tmp_path / "f.npz")
    assert set(loaded) == {0, 7}
    assert {k: v.tolist() for k, v in loaded[0].items()} == {k: v.tolist() for k, v in ASSIGNMENT.arrays().items()}
    assert loaded[7]["test/offsets"].tolist() == [0, 2]
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
        {0: Assignment({"train": [[0, 1], [2]]}, groups=["x", "y"]), 1: ASSIGNMENT},
    ]
    assert len({known, *map(files.content_sha256, others)}) == 1 + len(others)
