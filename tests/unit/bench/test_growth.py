"""The growth bench measures rounds of the given sizes and draws them."""

from __future__ import annotations

import itertools

from fedrepro.bench.growth import draw, measure, times


def test_every_size_has_its_row_and_the_smallest_is_the_unit():
    table = measure(2, drawn=(2, 4), total=(10, 20))
    assert table["size"].tolist() == [2, 4, 10, 20]
    assert table.groupby("what", sort=False)["times_the_smallest"].first().tolist() == [1, 1]
    assert (table["median_s"] > 0).all()
    assert table["bytes_a_client_beyond_its_data"].notna().tolist() == [False, False, False, True]
    assert len(draw(table).axes) == 2


def test_sizes_take_turns():
    calls = []
    times({size: lambda t, size=size: calls.append(size) for size in (1, 2, 3)}, repeats=2)
    turns = [calls[0], *(b for a, b in itertools.pairwise(calls) if a != b)]
    assert turns == [1, 2, 3, 1, 2, 3, 2, 3, 1]  # a warm-up, then two turns; each turn begins with another size
