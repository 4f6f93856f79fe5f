"""The samplers of penalised regression against known moments, quadrature, and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear import gibbs
from fedrepro.studies.fedlin.linear.devices import statistics


def data(n=30, d=2, sigma=0.7, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = x @ np.array([1.5, 0.1, 0.0, -1.0][:d]) + sigma * rng.normal(size=n)
    return torch.from_numpy(x), torch.from_numpy(y)


def prior(sd=1.0):
    return Params(r=torch.zeros(2, dtype=torch.float64), Q=torch.eye(2, dtype=torch.float64) / sd**2)


def chain(kind, device, cavity, sweeps=400, chains=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    width = chains * gibbs.width(len(device.moment))
    noise = torch.randn(sweeps, width, generator=generator, dtype=torch.float64)
    theta, phi, ends = gibbs.sweeps(kind, device, cavity, gibbs.start(device, chains), noise)
    assert torch.equal(ends.phi, phi[-1])
    return theta[sweeps // 10 :].flatten(0, 1), phi[sweeps // 10 :].flatten(0, 1)


def normals(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_uniform_numbers_from_normal_ones():
    u = gibbs.log_uniform(normals(20000)).exp()
    assert u.mean().item() == pytest.approx(0.5, abs=0.01)
    assert u.var().item() == pytest.approx(1 / 12, abs=0.003)
    assert gibbs.log_uniform(torch.zeros(1)).item() == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(("mean", "shape"), [(0.5, 2.0), (3.0, 1.0)])
def test_inverse_gaussian_numbers_have_their_mean_variance_and_inverse_mean(mean, shape):
    """E x = μ, Var x = μ³/λ, E 1/x = 1/μ + 1/λ."""
    z, u = normals(2, 400000)
    x = gibbs.inverse_gaussian(*(torch.full_like(z, v) for v in (mean, shape)), z.square() / 2, gibbs.log_uniform(u))
    assert x.mean().item() == pytest.approx(mean, rel=0.02)
    assert x.var().item() == pytest.approx(mean**3 / shape, rel=0.06)
    assert (1 / x).mean().item() == pytest.approx(1 / mean + 1 / shape, rel=0.02)


def test_inverse_gaussian_numbers_do_not_cancel_for_a_huge_mean():
    """As the mean grows x tends to λ/z²."""
    z = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    huge = torch.full_like(z, 1e14)
    x = gibbs.inverse_gaussian(huge, torch.ones_like(z), z.square() / 2, torch.full_like(z, -1e-30))
    branch = gibbs.inverse_gaussian(huge, torch.ones_like(z), z.square() / 2, torch.full_like(z, -50.0))
    torch.testing.assert_close(branch, z**-2)
    assert (x > 1e20).all()


@pytest.mark.parametrize("kind", ["ridge", "ridge_printed"])
def test_ridge_has_the_moments_of_quadrature(kind):
    """φ's marginal posterior is known up to a constant: y_i in the eigenbasis are normal with variance σ² + e_i τ²."""
    x, y = data()
    device, cavity = statistics(x, y), prior()
    _, phi = chain(kind, device, cavity)
    u, v = np.meshgrid(np.linspace(-5, 5, 401), np.linspace(-3, 2, 401), indexing="ij")
    basis, s, _ = np.linalg.svd(x.numpy())
    spectrum = np.zeros(len(y))
    spectrum[: len(s)] = s**2
    square = (basis.T @ y.numpy()) ** 2
    power = 1.0 if kind == "ridge" else 0.5
    variance = np.exp(v)[..., None] + spectrum * np.exp(power * v - u)[..., None]
    log = -0.5 * (np.log(variance) + square / variance).sum(-1) - 0.5 * (u**2 + v**2)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    for j, grid in enumerate((u, v)):
        mean = (weights * grid).sum()
        sd = math.sqrt((weights * (grid - mean) ** 2).sum())
        assert phi[:, j].mean().item() == pytest.approx(mean, abs=0.06 * sd)
        assert phi[:, j].std().item() == pytest.approx(sd, rel=0.05)


@pytest.mark.parametrize(("kind", "variance"), [("ridge", 0.25 / 3), ("ridge_printed", 0.5 / 3)])
def test_theta_given_phi_is_normal_with_the_priors_variance(kind, variance):
    """λ = 3, σ = ½: the variance is σ²/λ, as printed σ/λ; θ | φ, y ~ N(P⁻¹Xᵀy/σ², P⁻¹) with P = XᵀX/σ² + I/variance."""
    x, y = data(n=4)
    device, z = statistics(x, y), normals(1, 2)
    phi = torch.tensor([[math.log(3), math.log(0.25)]], dtype=torch.float64)
    draw = gibbs.normal_theta(device, gibbs.PENALTIES[kind])
    P = device.gram / 0.25 + torch.eye(2, dtype=torch.float64) / variance
    mean = torch.linalg.solve(P, device.moment / 0.25)
    torch.testing.assert_close(draw(device, torch.zeros_like(z), phi, torch.zeros_like(z))[0], mean)
    away = draw(device, torch.zeros_like(z), phi, z)[0] - mean
    assert (away @ P @ away).item() == pytest.approx(z.square().sum().item())


def test_lasso_has_the_moments_of_importance_sampling():
    """One predictor: (θ, φ) drawn around the posterior, weighted by the exact density."""
    x, y = data(n=12, d=1)
    device, cavity = statistics(x, y), prior()
    theta, phi = chain("lasso", device, cavity)
    draws = torch.cat([theta, phi], 1)
    centre, scale = draws.mean(0), 1.5 * torch.linalg.cholesky(draws.T.cov())
    z = normals(400000, 3, seed=5)
    chi = normals(400000, 5, seed=6).square().sum(1) / 5
    at = centre + (z / chi.sqrt()[:, None]) @ scale.T
    log_q = -4.0 * (z.square().sum(1) / chi / 5).log1p()
    t, u, v = at.unbind(1)
    residual = (y[:, None] - x * t).square().sum(0)
    rate = u - v / 2
    log_p = rate - t.abs() * rate.exp() - len(y) / 2 * v - residual / 2 * (-v).exp() - (u**2 + v**2) / 2
    w = torch.softmax(log_p - log_q, 0)
    assert 1 / w.square().sum() > 50000
    mean = w @ at
    sd = (w @ (at - mean).square()).sqrt()
    for j in range(3):
        assert draws[:, j].mean().item() == pytest.approx(mean[j].item(), abs=0.06 * sd[j].item())
        assert draws[:, j].std().item() == pytest.approx(sd[j].item(), rel=0.06)


def test_with_no_samples_the_draws_are_the_priors():
    """θ | φ is Laplace, and φ follows the cavity."""
    device = statistics(torch.zeros(0, 1, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    cavity = Params(r=torch.tensor([1.0, 0.0], dtype=torch.float64), Q=torch.eye(2, dtype=torch.float64) * 4)
    theta, phi = chain("lasso", device, cavity, sweeps=800)
    assert phi[:, 0].mean().item() == pytest.approx(0.25, abs=0.05)
    assert phi[:, 1].mean().item() == pytest.approx(0.0, abs=0.05)
    assert phi.std(0).tolist() == pytest.approx([0.5, 0.5], rel=0.08)
    scaled = theta[:, 0].abs() * (phi[:, 0] - phi[:, 1] / 2).exp()
    assert scaled.mean().item() == pytest.approx(1.0, rel=0.08)  # |Laplace(1)| is Exp(1)


@pytest.mark.parametrize("kind", list(gibbs.PENALTIES))
@pytest.mark.parametrize("case", ["collinear", "constant y", "one sample", "no sample"])
def test_awkward_data_give_finite_draws(kind, case):
    x, y = data(n=20, d=4)
    if case == "collinear":
        x[:, 1] = x[:, 0]
    elif case == "constant y":
        y = torch.zeros_like(y)
    elif case == "one sample":
        x, y = x[:1], y[:1]
    else:
        x, y = x[:0], y[:0]
    theta, phi = chain(kind, statistics(x, y), prior(), sweeps=60)
    assert theta.isfinite().all()
    assert phi.isfinite().all()
    assert phi.std(0).min() > 0.01  # the chain moves
