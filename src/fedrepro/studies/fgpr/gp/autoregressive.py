"""AR: f_t(x) = ρ_t f_{t−1}(x) + δ_t(x), all levels at once (Kennedy & O'Hagan 2000; thesis §4.6).

f_1 and every δ_t are independent zero-mean processes with kernels k_r of their own, so all levels are jointly normal:
cov(f_s(x), f_t(x')) = Σ_{r ≤ min(s,t)} w_{s,r} w_{t,r} k_r(x, x') with w_{s,r} = ρ_{r+1} … ρ_s. The exact likelihood of
all samples together is maximised, so designs need not be nested. Every level has a noise of its own. From every start
there are two searches: with the noise held at its floor and then freed, as published implementations of this model do,
and with the noise free and a smooth δ_t (the first start's lengthscale) throughout, since the former can end with a δ_t
that is white noise (l → 0), where freeing changes nothing. The better is kept. Predictions are of the highest level.

Data: (x [n_t, d], y [n_t]) from the lowest level to the highest.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from fedrepro.studies.fgpr.gp.exact import Data, Fit, Law, conditional, log_density
from fedrepro.studies.fgpr.gp.kernels import scaled_kernel
from fedrepro.studies.fgpr.gp.maximum_likelihood import LENGTHSCALES, NOISE_FLOOR, Effort, start_values
from fedrepro.studies.fgpr.gp.search import maximise, no_jitter_warnings


@dataclass
class AutoregressiveGP:
    ard: bool = True
    noise_floor: float = NOISE_FLOOR
    starts: int = 2
    evaluations: int = 200

    def fit(self, data: Data, rng: np.random.Generator) -> Self:
        self.x, self.y = (torch.cat(part) for part in zip(*data, strict=True))
        self.sizes = [len(y) for _, y in data]
        self.level = torch.repeat_interleave(torch.arange(len(data)), torch.tensor(self.sizes))
        self.kernels: Any = nn.ModuleList(scaled_kernel("rbf", self.x.shape[-1], self.ard) for _ in data).to(self.x)
        self.rho = nn.Parameter(self.x.new_ones(len(data) - 1))
        self.log_noise = nn.Parameter(self.x.new_full((len(data),), math.log(self.noise_floor)))
        self.effort = Effort()
        shape = [*self.kernels.parameters(), self.rho]
        best: list[Tensor] = []
        for lengthscales, noise in start_values(self.starts, len(data), rng):
            held = maximise(
                self.likelihood, shape, [partial(self._start, lengthscales, self.noise_floor)], self.evaluations
            )
            self.effort = self.effort.plus(held, last=False)
            smooth = np.append(lengthscales[:1], np.full(len(lengthscales) - 1, LENGTHSCALES[0]))
            for begin in (lambda: None, partial(self._start, smooth, noise)):
                freed = maximise(self.likelihood, [*shape, self.log_noise], [begin], self.evaluations)
                if not best or freed.value > self.effort.value:
                    best = [p.detach().clone() for p in (*shape, self.log_noise)]
                self.effort = self.effort.plus(freed)
        with torch.no_grad(), no_jitter_warnings():
            for p, value in zip((*shape, self.log_noise), best, strict=True):
                p.copy_(value)
            factor = psd_safe_cholesky(self._covariance())
            weights = torch.cholesky_solve(self.y[:, None], factor)[:, 0]
            self.fitted = Fit(factor, weights, factor.new_zeros(()))
        return self

    def _start(self, lengthscales: np.ndarray, noise: float) -> None:
        """f_1 of variance 1, differences of variance 0.1, ρ = 1."""
        self.rho.fill_(1.0)
        self.log_noise.fill_(math.log(noise))
        for r, (kernel, lengthscale) in enumerate(zip(self.kernels, lengthscales.tolist(), strict=True)):
            kernel.base_kernel.lengthscale = lengthscale
            kernel.outputscale = 1.0 if r == 0 else 0.1

    def weight(self, r: int) -> Tensor:
        """w_{s,r} of the levels s = r, …, T."""
        return torch.cat([self.rho.new_ones(1), torch.cumprod(self.rho[r:], 0)])

    def noise(self) -> Tensor:
        return self.log_noise.exp().clamp_min(self.noise_floor)

    def _covariance(self) -> Tensor:
        """C of all samples, noise included: [n, n]."""
        c, first = torch.diag(self.noise()[self.level]), 0
        for r, kernel in enumerate(self.kernels):
            # samples are ordered by level, so those that contain δ_r are the last rows and columns
            w = self.weight(r)[self.level[first:] - r]
            part = w[:, None] * kernel(self.x[first:]).to_dense() * w
            c = c + nn.functional.pad(part, (first, 0, first, 0))
            first += self.sizes[r]
        return c

    def likelihood(self) -> Tensor:
        """log p(y) / n."""
        return log_density(psd_safe_cholesky(self._covariance()), self.y)

    @torch.no_grad()
    def predict(self, x: Tensor) -> Law:
        """The law of observations of the highest level at x [m, d]."""
        cross, variance, first = x.new_zeros(len(self.y), len(x)), x.new_zeros(len(x)), 0
        for r, kernel in enumerate(self.kernels):
            w = self.weight(r)
            cross[first:] += w[self.level[first:] - r][:, None] * kernel(self.x[first:], x).to_dense() * w[-1]
            variance += w[-1] ** 2 * kernel.outputscale
            first += self.sizes[r]
        mean, variance = conditional(self.fitted, cross, variance)
        return mean, variance + self.noise()[-1]
