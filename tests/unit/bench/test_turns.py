"""Systems of the bench take turns and are compared turn by turn."""

from __future__ import annotations

import pytest

from fedrepro.bench.common import beginning_with, times_as_long


def test_each_begins_a_turn_and_all_take_part_in_it():
    turns = ["".join(beginning_with(repeat, "abc")) for repeat in range(4)]
    assert turns == ["abc", "bca", "cab", "abc"]


def test_what_slows_a_turn_down_slows_down_both():
    assert times_as_long([2.0, 20.0, 2.2], [1.0, 10.0, 1.0]) == 2.0


def test_a_system_that_missed_a_turn_is_not_compared():
    with pytest.raises(ValueError, match="shorter"):
        times_as_long([2.0, 2.0], [1.0])
