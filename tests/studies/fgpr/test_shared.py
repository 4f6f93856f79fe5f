"""Maximum likelihood of one or several devices: against a dense computation, at an optimum, and on awkward data."""

import math

import numpy as np
import pytest
import torch

from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP


def device(n, seed, noise=0.1, d=1):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    y = np.sin(5 * x.sum(1)) + noise * rng.normal(size=n)
    return torch.from_numpy(x), torch.from_numpy(y)


def dense(theta, x, y):
    """(C, log p(y)) by numpy."""
    x, y = x.numpy(), y.numpy()
    lengthscale, variance, noise = (value.numpy() for value in theta)
    distance = (((x[:, None] - x[None]) / lengthscale) ** 2).sum(-1)
    c = variance * np.exp(-distance / 2) + noise * np.eye(len(y))
    sign, logdet = np.linalg.slogdet(c)
    assert sign > 0
    return c, -0.5 * (y @ np.linalg.solve(c, y) + logdet + len(y) * math.log(2 * math.pi))


@pytest.fixture(scope="module")
def fitted():
    data = [device(15, 0), device(25, 1)]
    return SharedGP(ard=True, starts=2).fit(data, np.random.default_rng(0)), data


def test_its_objective_is_the_sum_of_the_devices_likelihoods(fitted):
    model, data = fitted
    total = sum(dense(model.theta, x, y)[1] for x, y in data)
    assert model.effort.value * 40 == pytest.approx(total, abs=1e-7)


def test_it_ends_at_a_maximum(fitted):
    model, data = fitted
    best = sum(dense(model.theta, x, y)[1] for x, y in data)
    for name in ("lengthscale", "variance", "noise"):
        for factor in (0.95, 1.05):
            moved = model.theta._replace(**{name: factor * getattr(model.theta, name)})
            assert sum(dense(moved, x, y)[1] for x, y in data) < best


def test_prediction_conditions_on_the_devices_own_data(fitted):
    model, data = fitted
    (x, y), new = data[1], torch.linspace(0, 1, 7, dtype=torch.float64)[:, None]
    lengthscale, variance, noise = (value.numpy() for value in model.theta)
    c, _ = dense(model.theta, x, y)
    cross = variance * np.exp(-0.5 * ((new.numpy() - x.numpy().T) / lengthscale) ** 2)
    mean, predicted = model.predict(new, 1)
    np.testing.assert_allclose(mean.numpy(), cross @ np.linalg.solve(c, y.numpy()), atol=1e-8)
    explained = (cross * np.linalg.solve(c, cross.T).T).sum(1)
    np.testing.assert_allclose(predicted.numpy(), variance + noise - explained, atol=1e-8)


def test_sharing_helps_a_device_with_few_samples():
    few, many, (x, y) = device(6, 2, 0.02), device(40, 3, 0.02), device(200, 4, 0.0)
    rng = np.random.default_rng(0)
    errors = {
        name: (model.predict(x)[0] - y).square().mean().sqrt().item()
        for name, model in (("alone", SharedGP().fit([few], rng)), ("shared", SharedGP().fit([few, many], rng)))
    }
    assert errors["shared"] < errors["alone"]


AWKWARD = {
    "duplicate inputs": (torch.zeros(8, 2, dtype=torch.float64) + 0.5, torch.arange(8.0, dtype=torch.float64)),
    "one point": (torch.full((1, 2), 0.3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)),
    "constant": (
        torch.rand(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
        torch.ones(9).double(),
    ),
    "no noise": (*device(40, 5, 0.0, 2),),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_data_gives_finite_laws(name):
    model = SharedGP(ard=True, starts=1, noise_floor=1e-10).fit([AWKWARD[name]], np.random.default_rng(0))
    x = torch.cat([AWKWARD[name][0], torch.rand(5, 2, generator=torch.Generator().manual_seed(1)).double()])
    mean, variance = model.predict(x)
    assert mean.isfinite().all()
    assert (variance > 0).all()
    assert np.isfinite(model.effort.value)
