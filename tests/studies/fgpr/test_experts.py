"""DGP's rules: one expert, two by hand, and experts without data."""

import numpy as np
import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.algorithms.gp_distributed import RULES, combine


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def two_experts():
    return t([1.0], [3.0]), t([0.5], [0.25]), t(2.0)


@pytest.mark.parametrize("rule", ["poe", "gpoe", "bcm"])
def test_one_expert_is_that_expert(rule):
    mean, variance = combine(rule, t([0.7, -2.0]), t([0.3, 1.9]), t(2.0, 2.0))
    torch.testing.assert_close(mean, t(0.7, -2.0))
    torch.testing.assert_close(variance, t(0.3, 1.9))


@pytest.mark.parametrize(
    ("rule", "precision", "weighted"),
    [
        ("poe", 2 + 4, 1 * 2 + 3 * 4),
        ("gpoe", 1 + 2, 1 * 1 + 3 * 2),
        ("bcm", 2 + 4 - 1 / 2, 1 * 2 + 3 * 4),
        # β = ½ log 4, ½ log 8
        (
            "rbcm",
            np.log(4) / 2 * 2 + np.log(8) / 2 * 4 + (1 - np.log(32) / 2) / 2,
            np.log(4) / 2 * 2 + 3 * np.log(8) / 2 * 4,
        ),
    ],
)
def test_two_experts_by_hand(rule, precision, weighted):
    mean, variance = combine(rule, *two_experts())
    assert mean.item() == pytest.approx(weighted / precision)
    assert variance.item() == pytest.approx(1 / precision)


def test_rbcm_falls_back_to_the_prior_where_its_experts_know_nothing():
    """So does bcm; poe is overconfident in the prior's mean, gpoe keeps the prior."""
    mean, variance, prior = torch.zeros(10, 1).double(), torch.full((10, 1), 2.0).double(), t(2.0)
    found = {rule: combine(rule, mean, variance, prior)[1].item() for rule in RULES}
    assert found == pytest.approx({"poe": 0.2, "gpoe": 2.0, "bcm": 2.0, "rbcm": 2.0})


def test_an_unknown_rule_is_an_error():
    with pytest.raises(UserError, match="rule: 'mean' is unknown"):
        combine("mean", *two_experts())
