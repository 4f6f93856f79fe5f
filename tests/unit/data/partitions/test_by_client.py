"""The clients of the data set: all of them, or some."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.partitions.by_client import by_client
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import held, rng, sizes_of


def split(client=None, group=None, rows: int = 6) -> Split:
    columns = {"client": client, "group": group}
    return Split(np.zeros((rows, 1)), np.zeros(rows), **{k: np.array(v) for k, v in columns.items() if v is not None})


#: clients 0 … 4 with 3, 1, 4, 2, 4 samples, in groups 7, 8, 9, 8, 7
FIVE = Dataset(
    "real",
    train=split([4, 2, 0, 2, 3, 4, 1, 4, 2, 0, 2, 3, 4, 0], [7, 9, 7, 9, 8, 7, 8, 7, 9, 7, 9, 8, 7, 7], rows=14),
    test=split([4, 0, 2, 2], rows=4),
)


def test_each_client_holds_the_rows_marked_with_its_number():
    found = by_client(Dataset("real", train=split(client=[2, 0, 1, 0, 2, 2])), rng())
    assert held(found) == [[1, 3], [2], [0, 4, 5]]
    assert list(found.groups) == []


def test_groups_are_the_clients_own():
    data = Dataset("real", train=split(client=[1, 0, 1, 0, 2, 2], group=[7, 3, 7, 3, 7, 7]))
    assert list(by_client(data, rng()).groups) == ["3", "7", "7"]


def test_test_and_validation_rows_follow_their_own_marks():
    data = Dataset(
        "real",
        train=split(client=[0, 1, 2, 2, 1, 0]),
        validation=split(client=[2, 2, 2], rows=3),
        test=split(client=[1, 0, 1], rows=3),
    )
    found = by_client(data, rng())
    assert held(found, "validation") == [[], [], [0, 1, 2]]
    assert held(found, "test") == [[1], [0, 2], []]


def test_a_test_set_without_marks_belongs_to_all():
    data = Dataset("real", train=split(client=[0, 1, 1, 0, 1, 1]), test=split(rows=4))
    assert held(by_client(data, rng()), "test") == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("options", "sizes", "groups"),
    [
        ({}, [3, 1, 4, 2, 4], "78987"),
        ({"clients": 3}, [3, 4, 4], "797"),
        ({"clients": 1}, [4], "9"),  # of the two largest, the first
        ({"clients": 2, "choose": "first"}, [3, 1], "78"),
        ({"clients": 2, "choose": "first", "minimum": 2}, [3, 4], "79"),
        ({"minimum": 3}, [3, 4, 4], "797"),
        ({"clients": 5, "minimum": 0}, [3, 1, 4, 2, 4], "78987"),
    ],
)
def test_some_clients_keep_the_order_and_their_groups(options, sizes, groups):
    found = by_client(FIVE, rng(), **options)
    assert sizes_of(found) == sizes
    assert "".join(found.groups) == groups


def test_the_test_samples_of_the_chosen_come_along():
    found = by_client(FIVE, rng(), clients=2)
    assert held(found) == [[1, 3, 8, 10], [0, 5, 7, 12]]
    assert held(found, "test") == [[2, 3], [0]]


def test_random_clients_are_any_of_those_that_are_large_enough():
    drawn = {tuple(sizes_of(by_client(FIVE, rng(s), clients=2, choose="random", minimum=2))) for s in range(60)}
    assert drawn == {(3, 4), (3, 2), (4, 2), (4, 4), (2, 4)}  # every pair of clients 0, 2, 3, 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": 6}, r"^by_client: clients = 6: 5 of the 5 have at least 1 training samples$"),
        ({"clients": 4, "minimum": 3}, r"clients = 4: 3 of the 5 have at least 3 training samples$"),
        ({"clients": 0}, r"clients = 0: 5 of the 5"),
        ({"minimum": 9}, r"^by_client: 0 of the 5 have at least 9 training samples$"),
        ({"choose": "largst"}, r"choose = 'largst' is unknown; did you mean 'largest'\?"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        by_client(FIVE, rng(), **options)


@pytest.mark.parametrize(
    ("client", "named"), [([0, 2, 2, 0, 2, 2], "0, 2"), ([-1, 0, 1, 0, 1, 0], "-1, 0, 1"), ([9, 9, 9, 9, 9, 9], "9")]
)
def test_a_gap_in_the_numbers_is_refused(client, named):
    with pytest.raises(UserError, match=rf"numbered 0, 1, …: training samples have {named}$"):
        by_client(Dataset("real", train=split(client=client)), rng())


@pytest.mark.parametrize("stranger", [5, -1])
def test_a_client_that_only_the_test_set_knows_is_refused(stranger):
    data = Dataset("real", train=split(client=[0, 1, 1, 0, 1, 1]), test=split(client=[0, stranger, 1], rows=3))
    with pytest.raises(UserError, match=rf"the test set has clients without training samples: {stranger}$"):
        by_client(data, rng())


def test_data_without_marks_is_refused():
    with pytest.raises(UserError, match="by_client: this data set does not say which client"):
        by_client(Dataset("real", train=split()), rng())


def test_groups_have_the_names_that_the_data_gives_them():
    facts = {"group_names": np.array(["male", "female"])}
    data = Dataset("real", train=split([0, 1, 2, 1, 0, 2], [1, 0, 1, 0, 1, 1]), facts=facts)
    assert list(by_client(data, rng()).groups) == ["female", "male", "female"]
