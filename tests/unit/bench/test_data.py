"""The benchmark of the data sets: size, time and memory."""

from __future__ import annotations

from fedrepro.bench.data import measure


def test_a_stand_in_is_measured_with_its_size_and_memory():
    row = measure("student", "standin", ())
    assert (row["data"], row["kind"], row["samples"]) == ("student", "standin", 649)
    assert row["seconds"] > 0
    assert row["peak_mb"] > 1
