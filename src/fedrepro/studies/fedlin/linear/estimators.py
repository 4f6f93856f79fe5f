"""Closed-form estimators of linear models, for all devices of a federation at once or one by one."""

import torch
from torch import Tensor


def least_squares(x: Tensor, y: Tensor) -> Tensor:
    """The shortest θ of least squared error, also for collinear columns and n < d: x [n, d], y [n, S] → [d, S]; 0
    without samples."""
    if not len(y):
        return y.new_zeros(x.shape[1], y.shape[1])
    return torch.linalg.lstsq(x, y, driver="gelsd").solution


def ridge(curvature: Tensor, linear: Tensor, penalty: float) -> Tensor:
    """argmin (1/n)Σ(y − xᵀθ)² + λ‖θ‖² from H [K, d, d] and b [K, d, S]: [K, d, S]."""
    eye = torch.eye(curvature.shape[-1]).to(curvature)
    return torch.linalg.solve(curvature + penalty * eye, linear)


def posterior_mean(gram: Tensor, moment: Tensor, omega: Tensor, variance: float) -> Tensor:
    """E[Θ | data] under the prior of eq. (3.2) and noise σ²: the estimator of least expected squared error.

    gram [K, d, d] are the devices' XXᵀ, moment [K, d] their XY, omega [K, K]; the mean is [K, d]. With M = Ω ⊗ I and
    the block-diagonal P of XXᵀ/σ² it is (I + MP)⁻¹ M XY/σ². Ω may have any rank, since it is not inverted.
    """
    clients, d = moment.shape
    m = torch.kron(omega, torch.eye(d).to(omega))
    mp = (m.view(-1, clients, d)[:, :, None, :] @ (gram / variance)[None]).reshape(clients * d, clients * d)
    right = m @ moment.reshape(-1) / variance
    return torch.linalg.solve(torch.eye(clients * d).to(mp) + mp, right).view(clients, d)
