"""The batched Gaussian process against a dense computation in numpy, and numerically hard data."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp import exact
from fedrepro.studies.fgpr.gp.exact import Theta, cholesky, fit, likelihood, predict
from fedrepro.studies.fgpr.gp.kernels import KERNELS

every_kernel = pytest.mark.parametrize("name", KERNELS)
either = pytest.mark.parametrize("ard", [False, True], ids=["isotropic", "ard"])


def dense_kernel(name, theta, x1, x2):
    r2 = (((x1[:, None] - x2[None]) / theta[0]) ** 2).sum(-1)
    r = np.sqrt(3 * r2)
    return theta[1] * (np.exp(-r2 / 2) if name == "rbf" else (1 + r) * np.exp(-r))


def dense(name, theta, x, y, x_new):
    """L, mean and variance of one data set, by explicit inverse and determinant."""
    c = dense_kernel(name, theta, x, x) + theta[2] * np.eye(len(x))
    inverse = np.linalg.inv(c)
    value = 0.5 * (y @ inverse @ y + np.linalg.slogdet(c)[1] + len(y) * np.log(2 * np.pi))
    cross = dense_kernel(name, theta, x_new, x)
    return value, cross @ inverse @ y, theta[1] - np.einsum("mi,ij,mj->m", cross, inverse, cross)


def dense_gradient(name, theta, x, y):
    """Tr[C⁻¹(I − y yᵀC⁻¹) ∂C/∂θ] / 2 of the thesis, with ∂C/∂θ by central differences of the kernel."""
    c = dense_kernel(name, theta, x, x) + theta[2] * np.eye(len(x))
    inverse = np.linalg.inv(c)
    outer = 0.5 * inverse @ (np.eye(len(x)) - np.outer(y, y) @ inverse)
    r = [(x[:, None, j] - x[None, :, j]) ** 2 for j in range(x.shape[1])]
    scale = np.broadcast_to(theta[0], x.shape[1])
    r2 = sum(r_j / l_j**2 for r_j, l_j in zip(r, scale, strict=True))
    base = np.exp(-r2 / 2) if name == "rbf" else 3 * np.exp(-np.sqrt(3 * r2))
    by = [theta[1] * base * r_j / l_j**3 for r_j, l_j in zip(r, scale, strict=True)]
    by = by if len(theta[0]) > 1 else [sum(by)]
    return [
        *(np.sum(outer.T * d) for d in by),
        np.sum(outer.T * (c - theta[2] * np.eye(len(x))) / theta[1]),
        np.trace(outer),
    ]


def random_batch(ard, batch=3, n=12, d=2, seed=0):
    rng = np.random.default_rng(seed)
    x, y, x_new = rng.random((batch, n, d)), rng.normal(size=(batch, n)), rng.random((batch, 5, d))
    theta = rng.uniform(0.2, 1.0, (batch, d if ard else 1)), rng.uniform(0.5, 2, batch), rng.uniform(0.01, 0.5, batch)
    return theta, x, y, x_new


def as_theta(theta) -> Theta:
    return Theta(*map(torch.from_numpy, theta))


@every_kernel
@either
def test_likelihood_gradient_and_prediction_are_those_of_a_dense_computation(name, ard):
    theta, x, y, x_new = random_batch(ard)
    tensors = [torch.from_numpy(v) for v in (x, y, x_new)]
    found = likelihood(name, as_theta(theta), *tensors[:2])
    mean, variance = predict(name, as_theta(theta), *tensors)
    noisy = predict(name, as_theta(theta), *tensors, noisy=True)[1]
    for b in range(len(x)):
        own = [t[b] for t in theta]
        expected = dense(name, own, x[b], y[b], x_new[b])
        for ours, theirs in zip((found.value[b], mean[b], variance[b]), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-8, rtol=1e-8)
        gradient = [*found.gradient.lengthscale[b], found.gradient.variance[b], found.gradient.noise[b]]
        np.testing.assert_allclose(gradient, dense_gradient(name, own, x[b], y[b]), atol=1e-8, rtol=1e-8)
        np.testing.assert_allclose(noisy[b], variance[b] + theta[2][b], atol=1e-14)


@every_kernel
def test_an_equal_lengthscale_in_all_dimensions_is_the_isotropic_kernel(name):
    theta, x, y, _ = random_batch(ard=False)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    one = likelihood(name, as_theta(theta), x, y)
    many = likelihood(name, as_theta((np.repeat(theta[0], 2, 1), *theta[1:])), x, y)
    torch.testing.assert_close(one.value, many.value, atol=1e-10, rtol=0)
    torch.testing.assert_close(one.gradient.lengthscale[:, 0], many.gradient.lengthscale.sum(1), atol=1e-9, rtol=0)


@every_kernel
@either
def test_rows_that_do_not_count_change_nothing(name, ard):
    theta, x, y, _ = random_batch(ard)
    theta, x, y = as_theta(theta), torch.from_numpy(x), torch.from_numpy(y)
    mask = torch.ones_like(y)
    mask[:, 8:] = 0
    padded, short = likelihood(name, theta, x, y, mask), likelihood(name, theta, x[:, :8], y[:, :8])
    torch.testing.assert_close(padded.value, short.value)
    for ours, theirs in zip(padded.gradient, short.gradient, strict=True):
        torch.testing.assert_close(ours, theirs)


@either
def test_a_batch_in_pieces_is_the_batch(ard, monkeypatch):
    theta, x, y, _ = random_batch(ard, batch=5)
    theta, x, y = as_theta(theta), torch.from_numpy(x), torch.from_numpy(y)
    whole = likelihood("rbf", theta, x, y)
    monkeypatch.setattr(exact, "PIECE_BYTES", 2 * 12 * 12 * 8)
    parts = likelihood("rbf", theta, x, y)
    assert [s.stop - s.start for s in exact.pieces(5, 12)] == [2, 2, 2]
    torch.testing.assert_close(whole.value, parts.value, atol=1e-12, rtol=0)
    torch.testing.assert_close(whole.gradient.lengthscale, parts.gradient.lengthscale, atol=1e-10, rtol=0)


def test_several_batch_axes_are_as_good_as_one():
    theta, x, y, _ = random_batch(ard=True, batch=6)
    theta, x, y = as_theta(theta), torch.from_numpy(x), torch.from_numpy(y)
    flat = likelihood("matern32", theta, x, y)
    shaped = Theta(theta.lengthscale.view(2, 3, 2), theta.variance.view(2, 3), theta.noise.view(2, 3))
    found = likelihood("matern32", shaped, x.view(2, 3, 12, 2), y.view(2, 3, 12))
    torch.testing.assert_close(found.value.flatten(), flat.value)
    torch.testing.assert_close(found.gradient.lengthscale.reshape(6, 2), flat.gradient.lengthscale)


def one(lengthscale=0.5, variance=1.0, noise=1e-4) -> Theta:
    return Theta(f64([lengthscale]), f64(variance), f64(noise))


def f64(values) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float64))


HARD = {
    "duplicate inputs": (np.full(6, 0.3), np.linspace(-1, 1, 6), 1e-4),
    "one point": ([0.2], [1.5], 1e-4),
    "constant y": (np.linspace(0, 1, 9), np.zeros(9), 1e-4),
    "tiny noise": (np.linspace(0, 1, 60), np.sin(np.linspace(0, 6, 60)), 1e-18),
    "duplicates without noise": (np.tile(np.linspace(0, 1, 5), 2), np.ones(10), 0.0),
}


@every_kernel
@pytest.mark.parametrize("case", HARD)
def test_data_that_are_hard_for_a_cholesky_never_give_nan(name, case):
    *data, noise = HARD[case]
    x, y = f64(data[0])[:, None], f64(data[1])
    found = likelihood(name, one(noise=noise), x, y)
    mean, variance = predict(name, one(noise=noise), x, y, f64([[0.3], [2.0]]))
    for tensor in (found.value, *found.gradient, mean, variance):
        assert tensor.isfinite().all()
    assert (variance >= 0).all()
    if noise >= 1e-4:
        assert fit(name, one(noise=noise), x, y).jitter == 0


def test_a_point_alone_is_a_normal_law():
    x, y = f64([[0.2]]), f64([1.5])
    found = likelihood("rbf", one(variance=2.0, noise=0.25), x, y)
    expected = 0.5 * (1.5**2 / 2.25 + np.log(2.25) + np.log(2 * np.pi))
    assert found.value.item() == pytest.approx(expected, abs=1e-14)
    mean, variance = predict("rbf", one(variance=2.0, noise=0.25), x, y, x)
    assert mean.item() == pytest.approx(1.5 * 2 / 2.25, abs=1e-14)
    assert variance.item() == pytest.approx(2 - 4 / 2.25, abs=1e-14)


def test_jitter_is_as_little_as_does_and_is_logged(caplog):
    good, bad = f64(4 * np.eye(3)), f64(np.ones((3, 3)))
    bad[0, 0] -= 1e-9  # the least eigenvalue is just below 0
    with caplog.at_level(logging.WARNING, logger=exact.__name__):
        factor, jitter = cholesky(torch.stack([good, bad]))
    assert jitter[0] == 0
    assert 1e-10 < jitter[1] < 1e-7
    torch.testing.assert_close(factor[1] @ factor[1].T, bad + jitter[1] * f64(np.eye(3)), atol=1e-12, rtol=0)
    torch.testing.assert_close(factor[0], f64(2 * np.eye(3)))
    assert "1 of 2 covariance matrices" in caplog.text


def test_what_is_not_finite_is_not_hidden_by_jitter():
    factor, jitter = cholesky(f64([np.eye(2), np.full((2, 2), np.nan)]))
    assert factor[0].isfinite().all()
    assert factor[1].isnan().all()
    assert (jitter == 0).all()


def test_a_matrix_that_is_no_covariance_is_an_error():
    with pytest.raises(UserError, match="not positive definite"):
        cholesky(f64(-np.eye(2)))


def test_an_unknown_kernel_is_an_error_by_name():
    with pytest.raises(UserError, match="kernel = 'rfb'"):
        fit("rfb", one(), torch.zeros(1, 1), torch.zeros(1))
