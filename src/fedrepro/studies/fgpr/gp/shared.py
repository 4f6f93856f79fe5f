"""Gaussian processes with common hyper-parameters, each conditioned on its own data (thesis eq. 4.1), to convergence.

θ maximises Σ_k log p(y_k | x_k, θ), where Algorithm 4.1 would end with full batches, p_k = n_k/N and enough rounds.
With one device this is Separate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from fedrepro.studies.fgpr.gp.exact import Data, Law, Theta, predict
from fedrepro.studies.fgpr.gp.kernels import NOISE_FLOOR, start_values
from fedrepro.studies.fgpr.gp.maximum_likelihood import estimate
from fedrepro.studies.fgpr.gp.multi_start import Effort

#: least lengthscale (of inputs in [0, 1]) and variance
LEAST = (1e-3, 1e-6)


@dataclass
class SharedGP:
    """fit, then predict given the data of one device."""

    ard: bool = False
    noise_floor: float = NOISE_FLOOR
    starts: int = 3
    evaluations: int = 200

    def fit(self, data: Data, rng: np.random.Generator) -> SharedGP:
        self.data = list(data)
        dimensions = data[0][0].shape[-1]
        starts = [
            # `estimate` takes one lengthscale per start, in units of √d
            (float(lengthscale[0]) / np.sqrt(dimensions), 1.0, max(noise, 2 * self.noise_floor))
            for lengthscale, noise in start_values(self.starts, 1, rng)
        ]
        minima, equal = (*LEAST, self.noise_floor), [1.0] * len(data)
        options: dict[str, Any] = {"ard": self.ard, "starts": starts, "iterations": self.evaluations}
        found = estimate("rbf", self.data, equal, minima=minima, **options)
        self.theta: Theta = found.theta
        total = sum(len(y) for _, y in self.data)
        self.effort = Effort(-found.value / total, found.evaluations, converged=found.converged)
        return self

    def predict(self, x: Tensor, device: int = 0) -> Law:
        """The law of observations at x given one device's data."""
        return predict("rbf", self.theta, *self.data[device], x, noisy=True)
