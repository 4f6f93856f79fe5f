"""Estimators and the covariance of devices, by hand."""

from __future__ import annotations

import pytest
import torch

from fedrepro.studies.fedlin.linear.estimators import by_output, least_squares, posterior_mean, pulls, ridge, updated


def tensor(*values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_least_squares_of_several_outputs():
    x, theta = tensor([1, 0], [1, 1], [1, 2]), tensor([1, -1], [2, 3])
    torch.testing.assert_close(least_squares(x, x @ theta), theta)


def test_ridge_by_hand():
    # H = 2, b = (2, 4), λ = ½
    found = ridge(tensor([[2.0]]), tensor([[2.0, 4.0]]), 0.5)
    assert found.flatten().tolist() == pytest.approx([0.8, 1.6], rel=1e-14)


def test_the_posterior_mean_of_one_device():
    # precision XXᵀ/σ² + 1/Ω = 8 + ½, XY/σ² = 12
    found = posterior_mean(tensor([[4.0]]), tensor([6.0]), tensor([2.0]), 0.5)
    assert found.item() == pytest.approx(12 / 8.5, rel=1e-14)


def test_a_device_without_data_has_what_omega_says_of_it():
    # device 0: 2/(1 + ½) = 4/3; device 1: Ω_10/Ω_00 of it
    omega = tensor([2.0, 1.0], [1.0, 3.0])
    found = posterior_mean(tensor([[1.0]], [[0.0]]), tensor([2.0], [0.0]), omega, 1.0)
    assert found.flatten().tolist() == pytest.approx([4 / 3, 2 / 3], rel=1e-13)


def test_pulls_are_sums_over_the_inverse():
    theta = tensor([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])  # two devices, d = 2, S = 2: (1, 3) and (2, 4), …
    omega = torch.stack([tensor([2.0, 1.0], [1.0, 3.0]), tensor([1.0, 0.0], [0.0, 4.0])])
    found = pulls(by_output(theta, 2), omega)
    first = torch.linalg.inv(omega[0])
    for k in (0, 1):
        expected = tensor(1, 3) * first[0, k] + tensor(5, 7) * first[1, k]
        torch.testing.assert_close(found[0, k], expected)
    torch.testing.assert_close(found[1], tensor([2.0, 4.0], [6 / 4, 8 / 4]))


def test_omega_takes_on_the_second_moment_over_the_dimension():
    theta = tensor([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0])
    moment = torch.stack([tensor([10, 26], [26, 74]), tensor([20, 44], [44, 100])]).double() / 2
    omega = torch.eye(2).double().repeat(2, 1, 1)
    torch.testing.assert_close(updated(omega, by_output(theta, 2), 0.25, 0.5), 0.25 * omega + 0.5 * moment)
