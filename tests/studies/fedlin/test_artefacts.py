"""Cells of the tables of the federated linear models, by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from fedrepro.studies.fedlin import artefacts


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1.0, 3.0], "2.00 ± 1.41"),
        ([2.0], "2.00 ± 0.00"),
        ([1.0, math.inf, math.nan, 3.0], "2.00 ± 1.41"),
        ([math.inf], "diverged"),
        ([3e6, 1.0], "diverged"),
    ],
)
def test_a_cell_is_mean_and_sd_of_the_finite_runs(values, shown):
    assert artefacts.spread(pd.Series(values), digits=2) == shown


def test_a_cell_without_a_limit():
    assert artefacts.spread(pd.Series([3e6]), digits=0, none="", beyond=math.inf) == "3000000 ± 0"
    assert artefacts.spread(pd.Series([math.nan]), none="", beyond=math.inf) == ""


def test_the_reading_nearest_to_print_is_named_with_its_error():
    assert artefacts._closest({"sd": 1.2, "variance": 0.9, "noisy": 2e6}, target=1.0) == "variance (-10 %)"
    assert artefacts._closest({"sd": 1.2}, target=None) == ""
