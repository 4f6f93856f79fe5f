"""DVI: a sparse variational process whose bound is a sum over nodes (Gal, van der Wilk & Rasmussen 2014).

With inducing inputs Z, K_zz = LLᵀ and A_k = L⁻¹K_{z,k}, node k sends A_k A_kᵀ [M, M], A_k y_k [M] and three numbers,
which the server sums. With σ² the noise, B = I + ΣA_kA_kᵀ/σ² = L_B L_Bᵀ and c = L_B⁻¹ ΣA_k y_k/σ², Titsias'
collapsed bound is

    −N/2 log 2πσ² − log|L_B| − Σyᵀy/2σ² + cᵀc/2 − (tr K − ΣtrA_kA_kᵀ)/2σ².

Every evaluation is an exchange with all nodes: θ, Z go out, statistics come back. Deviations: L⁻¹ is applied at the
nodes, which know Z and θ, since K_zx K_xz itself is worse conditioned; L-BFGS instead of scaled conjugate gradients.
"""

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor, nn

from fedrepro.studies.fgpr.gp.exact import Data, Law
from fedrepro.studies.fgpr.gp.kernels import scaled_kernel
from fedrepro.studies.fgpr.gp.maximum_likelihood import LENGTHSCALES, NOISE_FLOOR, Effort
from fedrepro.studies.fgpr.gp.search import gaussian_likelihood, maximise, no_jitter_warnings


class Statistics(NamedTuple):
    """Sent by a node: [M, M], [M], and the numbers Σy², tr K, n."""

    outer: Tensor
    moment: Tensor
    square: Tensor
    trace: Tensor
    size: int


@dataclass
class DistributedVariationalGP:
    inducing: int = 20
    kernel_name: str = "rbf"
    ard: bool = False
    move_inducing: bool = True
    noise_floor: float = NOISE_FLOOR
    evaluations: int = 200
    jitter: float = 0.0

    def fit(self, data: Data, rng: np.random.Generator) -> Self:
        (x, _), *_ = data
        everywhere = torch.cat([x for x, _ in data])
        points = everywhere[rng.permutation(len(everywhere))[: self.inducing]].clone()
        kernel = scaled_kernel(self.kernel_name, x.shape[-1], self.ard).to(x)
        likelihood = gaussian_likelihood(self.noise_floor).to(x)
        kernel.base_kernel.lengthscale = torch.full_like(kernel.base_kernel.lengthscale, LENGTHSCALES[0])
        kernel.outputscale, likelihood.noise = 1.0, max(1e-2, 2 * self.noise_floor)
        return self.fit_from(data, kernel, likelihood, points)

    def fit_from(
        self,
        data: Data,
        kernel: Kernel,
        likelihood: GaussianLikelihood,
        points: Tensor,
        starts: Iterable[Callable[[], None]] = (lambda: None,),
    ) -> Self:
        self.kernel: Any = kernel
        self.likelihood: Any = likelihood
        self.points = nn.Parameter(points, requires_grad=self.move_inducing)
        parameters = [p for p in (*kernel.parameters(), *likelihood.parameters(), self.points) if p.requires_grad]
        total = sum(len(y) for _, y in data)
        self.effort: Effort = maximise(lambda: self.bound(data) / total, parameters, starts, self.evaluations)
        with torch.no_grad(), no_jitter_warnings():
            self.root, self.sums = self.gather(data)
        return self

    def node(self, root: Tensor, x: Tensor, y: Tensor) -> Statistics:
        a = torch.linalg.solve_triangular(root, self.kernel(self.points, x).to_dense(), upper=False)
        return Statistics(a @ a.mT, a @ y, y.square().sum(), self.kernel(x, diag=True).sum(), len(y))

    def gather(self, data: Data) -> tuple[Tensor, Statistics]:
        """L, and the sum of the nodes' statistics."""
        k = self.kernel(self.points).to_dense()
        root = psd_safe_cholesky(k + self.jitter * torch.eye(len(k)).to(k))
        nodes = (self.node(root, x, y) for x, y in data)
        return root, reduce(lambda one, other: Statistics(*map(operator.add, one, other)), nodes)

    def bound(self, data: Data) -> Tensor:
        """The lower bound of log p(y)."""
        _, sums = self.gather(data)
        noise = self.likelihood.noise.squeeze()
        root, c = self.server(sums)
        fit = sums.square / noise - c.square().sum()
        slack = (sums.trace - sums.outer.diagonal().sum()) / noise
        return -0.5 * (sums.size * torch.log(2 * math.pi * noise) + fit + slack) - root.diagonal().log().sum()

    def server(self, sums: Statistics) -> tuple[Tensor, Tensor]:
        """L_B and c."""
        noise = self.likelihood.noise.squeeze()
        root = psd_safe_cholesky(torch.eye(len(sums.outer)).to(sums.outer) + sums.outer / noise)
        return root, torch.linalg.solve_triangular(root, sums.moment[:, None] / noise, upper=False)

    @torch.no_grad()
    def predict(self, x: Tensor) -> Law:
        """The law of observations at x [m, d]."""
        root, c = self.server(self.sums)
        a = torch.linalg.solve_triangular(self.root, self.kernel(self.points, x).to_dense(), upper=False)
        b = torch.linalg.solve_triangular(root, a, upper=False)
        variance = self.kernel(x, diag=True) - a.square().sum(0) + b.square().sum(0)
        return (b.mT @ c)[:, 0], variance.clamp_min(0) + self.likelihood.noise

    def sent(self) -> int:
        """Numbers sent by a node in one exchange."""
        return self.inducing * (self.inducing + 1) + 3
