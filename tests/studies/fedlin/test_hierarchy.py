"""The closed form of f_k(φ), matched draws, σ² from residuals, new devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear import ep, estimators
from fedrepro.studies.fedlin.linear.devices import statistics


def device(n=5, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, d))), torch.from_numpy(rng.normal(size=n))


@pytest.mark.parametrize("n", [0, 1, 5])
def test_log_f_is_the_normal_density_of_y(n):
    """Y ~ N(Xμ, X T Xᵀ + σ²I), up to one constant for all φ."""
    x, y = device(n)
    phi = torch.tensor([[0.3, -1.0, 0.2, -0.4], [1.0, 0.0, -1.0, 0.5]], dtype=torch.float64)
    found, mean, _ = ep.conditional(statistics(x, y), torch.tensor(0.25, dtype=torch.float64), phi)
    exact = []
    for row in phi:
        covariance = x @ torch.diag(row[2:].exp()) @ x.T + 0.25 * torch.eye(n, dtype=torch.float64)
        off = y - x @ row[:2]
        exact.append(-0.5 * (torch.logdet(covariance) + off @ torch.linalg.solve(covariance, off)) if n else off.sum())
    torch.testing.assert_close(found[0] - found[1], exact[0] - exact[1])
    if n == 0:
        torch.testing.assert_close(mean, phi[:, :2])


def test_matched_numbers_have_mean_0_and_covariance_1():
    z = ep.matched_normals(torch.from_numpy(np.random.default_rng(1).normal(size=(20, 3))))
    torch.testing.assert_close(z.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(z.T @ z / 40, torch.eye(3, dtype=torch.float64), atol=1e-12, rtol=0)


def test_a_site_that_is_right_is_left_exactly_as_it_is():
    """A device without samples has f = 1: with a flat site all weights are equal and the moments are those of q."""
    data = statistics(torch.zeros(0, 2, dtype=torch.float64), torch.zeros(0, dtype=torch.float64))
    q = Params(r=torch.ones(4, dtype=torch.float64), Q=2 * torch.eye(4, dtype=torch.float64))
    flat = Params(r=torch.zeros(4, dtype=torch.float64), Q=torch.zeros(4, 4, dtype=torch.float64))
    rng = np.random.default_rng(2)
    z, z_theta = torch.from_numpy(rng.normal(size=(15, 4))), torch.from_numpy(rng.normal(size=(30, 2)))
    phi, theta, weights = ep.tilted(data, torch.tensor(1.0, dtype=torch.float64), q, flat, z, z_theta)
    torch.testing.assert_close(weights, torch.full((30,), 1 / 30, dtype=torch.float64))
    torch.testing.assert_close(phi.mean(0), torch.full((4,), 0.5, dtype=torch.float64))
    assert theta.shape == (30, 2)


def test_draws_weigh_as_f_over_the_site_and_theta_is_normal_given_phi():
    """Eq. (3.10): weights ∝ f(φ)/q_k(φ); θ | φ, y ~ N(P⁻¹h, P⁻¹), P = T⁻¹ + XᵀX/σ², h = T⁻¹μ + Xᵀy/σ²."""
    (x, y), variance = device(), torch.tensor(0.25, dtype=torch.float64)
    q = Params(r=torch.ones(4, dtype=torch.float64), Q=2 * torch.eye(4, dtype=torch.float64))
    site = Params(
        r=torch.tensor([1.0, -2.0, 0.5, 0.0]).double(), Q=torch.diag(torch.tensor([1.5, -0.5, 0.3, 0.1]).double())
    )
    rng = np.random.default_rng(2)
    z, z_theta = torch.from_numpy(rng.normal(size=(10, 4))), torch.from_numpy(rng.normal(size=(20, 2)))
    phi, theta, weights = ep.tilted(statistics(x, y), variance, q, site, z, z_theta)
    log_f = ep.conditional(statistics(x, y), variance, phi)[0]
    log_site = phi @ site["r"] - (phi @ site["Q"] * phi).sum(1) / 2
    off = weights.log() - (log_f - log_site)
    torch.testing.assert_close(off, off[:1].expand(20), rtol=1e-9, atol=1e-9)
    assert weights.sum().item() == pytest.approx(1)
    for row, own, numbers in zip(phi, theta, z_theta, strict=True):
        inverse = torch.diag((-row[2:]).exp())
        P = inverse + x.T @ x / 0.25
        away = own - torch.linalg.solve(P, inverse @ row[:2] + x.T @ y / 0.25)
        assert (away @ P @ away).item() == pytest.approx((numbers @ numbers).item())


def test_the_residual_variance_by_hand():
    """y = (0, 2) on x = (1, 1): θ = 1, residuals ∓1, over n − d = 1. A device with one sample has no degree of freedom
    left."""
    x = torch.ones(2, 1, dtype=torch.float64)
    two = statistics(x, torch.tensor([0.0, 2.0], dtype=torch.float64))
    single = statistics(x[:1], torch.tensor([5.0], dtype=torch.float64))
    assert ep.residual_variance([two]).item() == pytest.approx(2)
    assert ep.residual_variance([two, single]).item() == pytest.approx(2)
    assert ep.residual_variance([single]) is None


def test_a_new_device_without_samples_has_the_mean_and_with_many_least_squares():
    x, y = device(50)
    mean, tau = torch.tensor([1.0, -1.0], dtype=torch.float64), torch.tensor([0.5, 0.5], dtype=torch.float64)
    none, all_ = ((x[None, :n], y[None, :n]) for n in (0, 50))
    assert estimators.shrink(*none, mean, tau, 1.0).tolist() == [[1, -1]]
    assert estimators.nearest(*none, mean).tolist() == [[1, -1]]
    exact = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    torch.testing.assert_close(estimators.nearest(*all_, mean)[0], exact)
    torch.testing.assert_close(estimators.shrink(*all_, mean, tau, 1e-9)[0], exact, rtol=1e-6, atol=1e-6)


def test_the_nearest_model_to_a_start_fits_and_moves_along_the_samples_only():
    x, y = torch.tensor([[[1.0, 0.0, 0.0]]]), torch.tensor([[3.0]])
    assert estimators.nearest(x, y, torch.tensor([1.0, 5.0, -2.0])).tolist() == [[3, 5, -2]]
