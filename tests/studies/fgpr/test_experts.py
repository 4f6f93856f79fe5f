"""DGP's rules: one expert, by hand, and where nobody knows anything."""

import numpy as np
import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.experts import RULES, DistributedGP, combine


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
    """So does bcm; poe is sure of the prior's mean there, gpoe keeps the prior."""
    mean, variance, prior = torch.zeros(10, 1).double(), torch.full((10, 1), 2.0).double(), t(2.0)
    found = {rule: combine(rule, mean, variance, prior)[1].item() for rule in RULES}
    assert found == pytest.approx({"poe": 0.2, "gpoe": 2.0, "bcm": 2.0, "rbcm": 2.0})


def test_a_rule_that_is_not_there():
    with pytest.raises(UserError, match="rule: 'mean' is unknown"):
        combine("mean", *two_experts())


def devices(sizes, seed=0):
    rng = np.random.default_rng(seed)
    xs = [torch.from_numpy(rng.random((n, 1))) for n in sizes]
    return [(x, torch.sin(6 * x[:, 0]) + 0.05 * torch.from_numpy(rng.normal(size=len(x)))) for x in xs]


@pytest.mark.parametrize("rule", RULES)
def test_experts_together_know_more_than_one(rule):
    data, x = devices([12, 12, 12]), torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    model = DistributedGP(starts=1, evaluations=60).fit(data, np.random.default_rng(0))
    truth = torch.sin(6 * x[:, 0])
    errors = [(model.predict(x, k)[0] - truth).square().mean() for k in range(3)]
    assert (model.predict_together(x, rule)[0] - truth).square().mean() < max(errors)


def test_far_from_all_data_rbcm_is_the_prior():
    model = DistributedGP(starts=1, evaluations=60).fit(devices([12, 12, 12]), np.random.default_rng(0))
    mean, variance = model.predict_together(t([50.0]), "rbcm", noise=False)
    torch.testing.assert_close(mean, t(0.0))
    torch.testing.assert_close(variance, model.theta.variance.view(1))
