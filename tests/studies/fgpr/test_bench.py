"""The Gaussian process bench measures two ways to the same parameters."""

from __future__ import annotations

import pytest

from fedrepro.bench.gp import measure


def test_both_ways_end_at_the_same_parameters():
    table, apart = measure(runs=2, repeats=1)
    assert apart < 1e-7
    assert table["method"].tolist() == ["FGPR", "FGPR", "Separate", "Separate"]
    assert (table["median_s"] > 0).all()
    assert table["times_faster"].tolist()[1::2] == pytest.approx([1, 1])
