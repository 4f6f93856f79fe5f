"""Gaussian processes with common hyper-parameters, each conditioned on its own data (thesis eq. 4.1), to convergence.

θ maximises Σ_k log p(y_k | x_k, θ): where Algorithm 4.1 would end with full batches, p_k = n_k/N and as many rounds as
that takes. With one device this is Separate. Likelihood and prediction are exact.py's, the search maximum.py's.

Data: a list of (x [n_k, d], y [n_k]).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from fedrepro.studies.fgpr.gp.exact import Theta, predict
from fedrepro.studies.fgpr.gp.kernels import NOISE_FLOOR, start_values
from fedrepro.studies.fgpr.gp.maximum import maximise
from fedrepro.studies.fgpr.gp.multi_start import Effort

Data = Sequence[tuple[Tensor, Tensor]]
Law = tuple[Tensor, Tensor]  # mean and variance at m inputs: [m], [m]
#: least lengthscale (of inputs in [0, 1]) and variance
LEAST = (1e-3, 1e-6)


class SharedGP:
    """fit, then predict given the data of one device."""

    def __init__(
        self,
        kernel: str = "rbf",
        ard: bool = False,
        noise_floor: float = NOISE_FLOOR,
        starts: int = 3,
        evaluations: int = 200,
    ):
        self.kernel, self.ard, self.noise_floor = kernel, ard, noise_floor
        self.starts, self.evaluations = starts, evaluations

    def fit(self, data: Data, rng: np.random.Generator) -> SharedGP:
        self.data = list(data)
        dimensions = data[0][0].shape[-1]
        begin = [
            # maximum.py takes one lengthscale a start, in units of √d
            (float(lengthscale[0]) / np.sqrt(dimensions), 1.0, max(noise, 2 * self.noise_floor))
            for lengthscale, noise in start_values(self.starts, 1, rng)
        ]
        found = maximise(
            self.kernel,
            self.data,
            [1.0] * len(self.data),
            ard=self.ard,
            minima=(*LEAST, self.noise_floor),
            starts=begin,
            iterations=self.evaluations,
        )
        self.theta: Theta = found.theta
        total = sum(len(y) for _, y in self.data)
        self.effort = Effort(-found.value / total, found.evaluations, converged=found.converged)
        return self

    def predict(self, x: Tensor, device: int = 0, noise: bool = True) -> Law:
        """The law at x given one device's data; of observations with `noise`, else of the function."""
        return predict(self.kernel, self.theta, *self.data[device], x, noisy=noise)

    def hyper(self) -> dict[str, list[float]]:
        """The fitted hyper-parameters."""
        return {name: value.reshape(-1).tolist() for name, value in self.theta._asdict().items()}
