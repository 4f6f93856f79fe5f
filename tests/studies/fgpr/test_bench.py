"""The bench measures two ways to the same parameters, and a round over the number of devices."""

from __future__ import annotations

import pytest

from fedrepro.studies.fgpr.bench import growth, measure


def test_both_ways_end_at_the_same_parameters():
    table, apart = measure(runs=2, repeats=1)
    assert apart < 1e-7
    assert table["method"].tolist() == ["FGPR", "FGPR", "Separate", "Separate"]
    assert (table["median_s"] > 0).all()
    assert table["times_faster"].tolist()[1::2] == pytest.approx([1, 1])


def test_growth_has_a_row_per_number_of_devices():
    table = growth(repeats=2, devices=(2, 4))
    assert table["devices"].tolist() == [2, 4]
    assert (table["median_s"] > 0).all()
    assert table["times_the_smallest"][0] == 1
