"""Quadratic objectives by their coefficients: all that full-batch least squares needs of the data."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Quadratic(NamedTuple):
    """½wᵀHw − bᵀw + c: curvature H [..., d, d], linear b [..., d], constant c [...]; leading axis: clients."""

    curvature: Tensor
    linear: Tensor
    constant: Tensor

    def spectrum(self) -> tuple[float, float]:
        """(μ, L): the extreme eigenvalues over all clients' curvatures."""
        values = torch.linalg.eigvalsh(self.curvature)
        return values.min().item(), values.max().item()

    def of(self, clients: Tensor) -> Quadratic:
        return Quadratic(*(part[clients] for part in self))

    def minimiser(self) -> Tensor:
        """argmin of the plain mean over the clients: [d]."""
        found: Tensor = torch.linalg.solve(self.curvature.mean(0), self.linear.mean(0))
        return found

    def gradients(self, w: Tensor) -> Tensor:
        """Each client's gradient at its own point: w [K, d] → [K, d]."""
        return (self.curvature @ w[..., None])[..., 0] - self.linear
