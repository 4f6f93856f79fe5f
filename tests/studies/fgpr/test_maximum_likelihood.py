"""Maximum likelihood: the gradient vanishes there, and many devices recover the true parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.studies.fgpr.gp.exact import likelihood
from fedrepro.studies.fgpr.gp.maximum_likelihood import MINIMA, estimate


def draw(n, d, lengthscale, variance, noise, seed):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    r2 = (((x[:, None] - x[None]) / lengthscale) ** 2).sum(-1)
    k = variance * np.exp(-r2 / 2) + noise * np.eye(n)
    return torch.from_numpy(x), torch.from_numpy(np.linalg.cholesky(k) @ rng.normal(size=n))


@pytest.mark.parametrize("ard", [False, True])
def test_the_gradient_vanishes_at_the_maximum(ard):
    devices = [draw(30, 2, 0.3, 1.0, 0.05, seed) for seed in range(3)] + [draw(12, 2, 0.3, 1.0, 0.05, 9)]
    weights = [0.3, 0.3, 0.2, 0.2]
    found = estimate("rbf", devices, weights, ard=ard)
    value, gradient = 0.0, 0.0
    for (x, y), w in zip(devices, weights, strict=True):
        at = likelihood("rbf", found.theta, x, y)
        value += w * at.value.item()
        gradient = gradient + w * torch.cat(
            [
                at.gradient.lengthscale * found.theta.lengthscale,
                torch.stack(at.gradient[1:]) * torch.stack(found.theta[1:]),
            ]
        )
    assert found.converged
    assert found.value == pytest.approx(value)
    assert gradient.abs().max() < 1e-2


def test_many_devices_recover_the_parameters():
    devices = [draw(40, 1, 0.2, 2.0, 0.1, seed) for seed in range(40)]
    theta = estimate("rbf", devices).theta
    np.testing.assert_allclose(theta.lengthscale, 0.2, rtol=0.15)
    np.testing.assert_allclose(theta.variance, 2.0, rtol=0.3)
    np.testing.assert_allclose(theta.noise, 0.1, rtol=0.1)


def test_noise_stays_above_its_least_value():
    x = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]
    theta = estimate("rbf", [(x, torch.sin(6 * x[:, 0]))]).theta
    assert theta.noise == pytest.approx(MINIMA[2], rel=1e-6)


def test_a_device_without_weight_does_not_count():
    first, second = draw(30, 1, 0.2, 1.0, 0.1, 0), draw(30, 1, 0.5, 3.0, 0.5, 1)
    alone, together = estimate("rbf", [first]).theta, estimate("rbf", [first, second], [1.0, 0.0]).theta
    torch.testing.assert_close(alone.lengthscale, together.lengthscale)
