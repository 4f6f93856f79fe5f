"""Tables and figures of rates, weights and communication, by hand."""

import pandas as pd
import pytest

from fedrepro.report.plotting import figure
from fedrepro.studies.fgpr.artefacts import modular_numbers, quantile_bands


def test_numbers_that_modular_gp_sends():
    """2 inducing points in 3 dimensions: 6 inputs, 2 pseudo-targets, 2 means, 3 of the covariance, 3 lengthscales,
    variance, noise and bound."""
    assert modular_numbers(2, 3) == 6 + 2 + 2 + 3 + 3 + 3


def test_bands_hold_the_middle_half_and_nine_tenths_of_the_runs():
    own = pd.DataFrame({"round": [0] * 101 + [1] * 101, "value": [*range(101), *range(100, 201)]})
    _, ((ax,),) = figure()
    found = quantile_bands(ax, own, "round", "runs", "#000000").set_index("round")
    assert found.loc[0].tolist() == pytest.approx([5, 25, 50, 75, 95])
    assert found.loc[1, "median"] == 150
