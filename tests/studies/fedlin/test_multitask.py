"""Multitask relationship learning: shrinkage by hand, optimality, and what it gains where devices share factors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.studies.fedlin.linear.multitask import fitted, multitask, shrunk, summed


def devices(theta: np.ndarray, n: int, noise: float, seed: int = 0):
    """x [n, d] and y [n, 1] of each device of Θ [K, d]."""
    rng = np.random.default_rng(seed)
    x = [torch.from_numpy(rng.normal(size=(n, theta.shape[1]))) for _ in theta]
    noise_of = (torch.from_numpy(rng.normal(scale=noise, size=(n, 1))) for _ in theta)
    return x, [own @ torch.from_numpy(t)[:, None] + e for own, t, e in zip(x, theta, noise_of, strict=True)]


def test_singular_values_are_reduced():
    theta = torch.diag(torch.tensor([3.0, 1.0])).double()[None]
    torch.testing.assert_close(
        shrunk(theta, torch.tensor([1.5]).double())[0].abs(), torch.diag(torch.tensor([1.5, 0.0])).double()
    )


def test_without_a_penalty_it_is_least_squares_and_with_the_largest_zero():
    x, y = devices(np.array([[1.0, 2.0], [3.0, -1.0]]), 12, 0.3)
    gram, moment = summed(x, y)
    start = torch.zeros(1, 2, 2).double()
    alone = torch.stack([torch.linalg.lstsq(own, mine).solution[:, 0] for own, mine in zip(x, y, strict=True)])
    torch.testing.assert_close(
        fitted(gram, moment, torch.zeros(1).double(), start, 2000)[0], alone, rtol=1e-8, atol=1e-8
    )
    least = torch.linalg.matrix_norm(moment.transpose(0, 1), ord=2)
    assert not fitted(gram, moment, least * 1.001, start).any()
    assert fitted(gram, moment, least * 0.9, start).any()


def test_the_fit_is_a_stationary_point():
    """−∇ lies in λ ∂‖Θ‖_*: on Θ's own directions it is λ UVᵀ."""
    x, y = devices(np.outer(np.arange(1.0, 6.0), [1.0, 2.0, -1.0]), 15, 0.5)
    gram, moment = summed(x, y)
    penalty = 0.1 * torch.linalg.matrix_norm(moment.transpose(0, 1), ord=2)
    theta = fitted(gram, moment, penalty, torch.zeros(1, 5, 3).double(), 3000)[0]
    gradient = torch.einsum("kij,kj->ki", gram, theta) - moment[:, 0]
    u, singular, v = torch.linalg.svd(theta, full_matrices=False)
    kept = singular > 1e-8
    torch.testing.assert_close(
        (u.T @ -gradient @ v.T)[kept][:, kept], penalty * torch.eye(int(kept.sum())).double(), atol=1e-7, rtol=0
    )


def test_devices_of_one_factor_gain_and_unrelated_ones_lose_little():
    rng = np.random.default_rng(1)
    factor = np.outer(rng.normal(size=40), rng.normal(size=5))
    for theta, most in ((factor, 0.75), (rng.normal(size=(40, 5)), 1.1)):
        x, y = devices(theta, 12, 0.5, seed=2)
        alone = torch.stack([torch.linalg.lstsq(own, mine).solution for own, mine in zip(x, y, strict=True)])
        true = torch.from_numpy(theta)[..., None]
        ratio = (multitask(x, y) - true).norm() / (alone - true).norm()
        assert ratio < most


def test_outputs_choose_their_own_penalty():
    rng = np.random.default_rng(3)
    x, y = devices(np.outer(rng.normal(size=10), rng.normal(size=3)), 12, 0.5)
    _, other = devices(rng.normal(size=(10, 3)), 12, 0.5)
    both = multitask(x, [torch.cat(pair, dim=1) for pair in zip(y, other, strict=True)])
    assert both[..., :1].numpy() == pytest.approx(multitask(x, y).numpy(), rel=1e-9)
