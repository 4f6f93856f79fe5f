"""AR: the scale factor of a linear pair, its covariance by hand, and awkward data."""

import numpy as np
import pytest
import torch

from fedrepro.data.catalogue import Source
from fedrepro.studies.fgpr.datasets.multi_fidelity import multi_fidelity
from fedrepro.studies.fgpr.gp.autoregressive import AutoregressiveGP
from fedrepro.studies.fgpr.gp.device_errors import rmse
from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP


def low(x):
    return torch.sin(8 * x[:, 0]) + x[:, 0] ** 2


def points(n, seed, d=1):
    return torch.from_numpy(np.random.default_rng(seed).random((n, d)))


def linear_pair(factor, few=8):
    x, z = points(30, 0), points(few, 1)
    return [(x, low(x)), (z, factor * low(z))]


@pytest.mark.parametrize("factor", [2.5, -0.7])
def test_an_exactly_linear_pair_gives_the_factor_and_the_function(factor):
    model = AutoregressiveGP(starts=1).fit(linear_pair(factor), np.random.default_rng(0))
    assert model.rho.tolist() == pytest.approx([factor], rel=1e-3)
    new = points(200, 2)
    alone = SharedGP().fit(linear_pair(factor)[1:], np.random.default_rng(0))
    assert rmse(model.predict(new)[0], factor * low(new)) < 0.02
    assert rmse(model.predict(new)[0], factor * low(new)) < 0.2 * rmse(alone.predict(new)[0], factor * low(new))


def test_three_linear_levels_give_both_factors():
    x, z, u = points(40, 0), points(20, 1), points(8, 2)
    data = [(x, low(x)), (z, 2 * low(z)), (u, -3 * low(u))]
    model = AutoregressiveGP(starts=1).fit(data, np.random.default_rng(0))
    assert model.rho.tolist() == pytest.approx([2.0, -1.5], rel=1e-3)


def test_the_covariance_of_three_levels_by_hand():
    data = [(points(n, seed), torch.zeros(n).double()) for n, seed in ((2, 0), (1, 1), (1, 2))]
    model = AutoregressiveGP(starts=1, evaluations=1).fit(data, np.random.default_rng(0))
    with torch.no_grad():
        model.rho.copy_(torch.tensor([2.0, 3.0]))
        model.log_noise.fill_(np.log(0.5))
        k1, k2, k3 = (kernel(model.x).to_dense() for kernel in model.kernels)
        c = model._covariance()
    assert c[0, 1].item() == pytest.approx(k1[0, 1].item())
    assert c[0, 2].item() == pytest.approx(2 * k1[0, 2].item())
    assert c[1, 3].item() == pytest.approx(6 * k1[1, 3].item())
    assert c[2, 3].item() == pytest.approx(2 * 6 * k1[2, 3].item() + 3 * k2[2, 3].item())
    assert c[3, 3].item() == pytest.approx(36 * k1[3, 3].item() + 9 * k2[3, 3].item() + k3[3, 3].item() + 0.5)


def test_its_prediction_is_that_of_the_joint_law():
    """The conditional law of a further sample of the highest level, from the covariance of all samples and it."""
    data = [(points(12, 0, 2), points(12, 4)[:, 0]), (points(6, 1, 2), points(6, 5)[:, 0])]
    model = AutoregressiveGP(starts=1, evaluations=30).fit(data, np.random.default_rng(0))
    new = points(1, 3, 2)
    mean, variance = model.predict(new)
    with torch.no_grad():
        model.x, model.sizes, model.level = (
            torch.cat([model.x, new]),
            [12, 7],
            torch.cat([model.level, torch.ones(1).long()]),
        )
        c = model._covariance()
    weights = torch.linalg.solve(c[:-1, :-1], c[:-1, -1])
    torch.testing.assert_close(mean, (weights @ model.y).view(1), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(variance, (c[-1, -1] - weights @ c[:-1, -1]).view(1), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "high",
    [
        (torch.full((1, 1), 0.5, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)),
        (torch.full((6, 1), 0.5, dtype=torch.float64), torch.arange(6, dtype=torch.float64)),
        (points(5, 3), torch.ones(5, dtype=torch.float64)),
    ],
    ids=["one point", "duplicate inputs", "constant"],
)
def test_awkward_data_gives_finite_laws(high):
    x = points(20, 0)
    model = AutoregressiveGP(starts=1, evaluations=50).fit([(x, low(x)), high], np.random.default_rng(0))
    mean, variance = model.predict(points(10, 5))
    assert mean.isfinite().all()
    assert (variance > 0).all()


def test_the_difference_of_an_unrelated_pair_does_not_collapse_to_white_noise():
    """Example 2 of §4.6: no linear relation, so AR does as well as a process on the high fidelity alone."""
    data = multi_fidelity(Source(np.random.default_rng(0)), function="nonlinear", design="grid", test=10)
    levels = [tuple(torch.from_numpy(v[data.train.client == k]) for v in (data.train.x, data.train.y)) for k in (0, 1)]
    model = AutoregressiveGP(ard=False, starts=2, evaluations=100).fit(levels, np.random.default_rng(0))
    assert model.kernels[1].base_kernel.lengthscale.item() > 0.3
    assert abs(model.rho.item()) < 0.2
    assert model.noise()[1].item() == pytest.approx(0.70, abs=0.05)
