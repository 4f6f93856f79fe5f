"""Modular GP: sparse processes fitted device by device, joined once at a server (Moreno-Muñoz, Artés & Álvarez 2021).

Modules: device k fits Titsias' bound on its own data with M inducing points Z_k (variational.py with one node). It
sends the ratio of its q(u_k) to its prior, a normal factor in u_k = f_k(Z_k). With K_k = LLᵀ, W = L⁻¹K(Z_k, X_k) and
GGᵀ = WWᵀ/σ², this is an observation ỹ = H u_k + N(0, I) with H = GᵀL⁻¹ and ỹ = G⁻¹W y/σ²: M pseudo-targets.

Server: outputs of a linear model of coregionalisation, f_k = Σ_q a_kq g_q with Q latent processes g_q ~ GP(0, k_q). Its
bound Σ_k E[log q(u_k)/p(u_k)] − KL(q‖p) has its maximum over all q at log N(ỹ; 0, HK_C Hᵀ + I), which L-BFGS maximises
over a and k_q. Deviation: the paper also restricts q by global inducing points, which K·M ≤ 60 values do not need;
this is the best that any choice of them reaches. a starts at independent outputs plus one common process.

Data: (x [n_k, d], y [n_k]) per device; predictions are of the last device (the highest fidelity).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from fedrepro.studies.fgpr.gp.exact import Data, Law, cholesky, conditional, fit_covariance, log_density
from fedrepro.studies.fgpr.gp.kernels import scaled_kernel
from fedrepro.studies.fgpr.gp.maximum_likelihood import NOISE_FLOOR, Effort
from fedrepro.studies.fgpr.gp.search import maximise, no_jitter_warnings
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP

JITTER = 1e-6


class Module(NamedTuple):
    """Sent by a device: its inducing points [M, d], H [M, M], ỹ [M], and its noise."""

    points: Tensor
    map: Tensor
    targets: Tensor
    noise: Tensor


@torch.no_grad()
def as_module(fitted: DistributedVariationalGP) -> Module:
    noise = fitted.likelihood.noise.squeeze()
    g, _ = cholesky(fitted.sums.outer / noise)  # with jitter where the data see less than M directions
    targets = torch.linalg.solve_triangular(g, fitted.sums.moment[:, None] / noise, upper=False)[:, 0]
    h = torch.linalg.solve_triangular(fitted.root.mT, g, upper=True).mT  # Gᵀ L⁻¹
    return Module(fitted.points.detach(), h, targets, noise)


@dataclass
class ModularGP:
    inducing: int = 20
    latents: int = 3
    ard: bool = True
    noise_floor: float = NOISE_FLOOR
    evaluations: int = 200

    def fit(self, data: Data, rng: np.random.Generator) -> Self:
        self.effort = Effort()
        self.modules: list[Module] = []
        options: dict[str, Any] = {"ard": self.ard, "noise_floor": self.noise_floor, "evaluations": self.evaluations}
        for x, y in data:
            # jitter: the server has other kernels, under which K_k⁻¹ of a nearly singular K_k would count for too much
            alone = DistributedVariationalGP(min(self.inducing, len(y)), jitter=JITTER, **options).fit([(x, y)], rng)
            self.effort = self.effort.plus(alone.effort, last=False)
            with no_jitter_warnings():
                self.modules.append(as_module(alone))
        self._join()
        return self

    def _join(self) -> None:
        self.points = torch.cat([m.points for m in self.modules])
        self.map = torch.block_diag(*(m.map for m in self.modules))
        self.targets = torch.cat([m.targets for m in self.modules])
        outputs, sizes = torch.arange(len(self.modules)), torch.tensor([len(m.targets) for m in self.modules])
        self.owner = torch.repeat_interleave(outputs, sizes)
        self.kernel: Any = scaled_kernel("rbf", self.points.shape[-1], self.ard, (self.latents,)).to(self.points)
        self.kernel.outputscale = 1.0  # a has the scale
        self.kernel.raw_outputscale.requires_grad_(False)
        self.kernel.base_kernel.lengthscale = 0.5
        mixing = 0.3 * nn.functional.one_hot(outputs % self.latents, self.latents)
        mixing[:, 0] = 0.9
        self.mixing = nn.Parameter(mixing.to(self.points))
        parameters = [self.kernel.base_kernel.raw_lengthscale, self.mixing]
        self.effort = self.effort.plus(maximise(self.likelihood, parameters, evaluations=self.evaluations))
        with torch.no_grad(), no_jitter_warnings():
            self.fitted = fit_covariance(self._covariance(), self.targets)

    def coregionalised(self, x: Tensor, x_owner: Tensor, z: Tensor, z_owner: Tensor) -> Tensor:
        """cov(f_{owner}(x), f_{owner}(z)) = Σ_q a_kq a_lq k_q(x, z): [n, m]."""
        a, b = self.mixing[x_owner].mT[:, :, None], self.mixing[z_owner].mT[:, None, :]
        return (a * b * self.kernel(x, z).to_dense()).sum(0)

    def _covariance(self) -> Tensor:
        k = self.coregionalised(self.points, self.owner, self.points, self.owner)
        return self.map @ k @ self.map.mT + torch.eye(len(self.targets)).to(k)

    def likelihood(self) -> Tensor:
        """log N(ỹ; 0, H K_C Hᵀ + I) / number of pseudo-targets."""
        return log_density(cholesky(self._covariance())[0], self.targets)

    @torch.no_grad()
    def predict(self, x: Tensor) -> Law:
        """The law of the last device's observations at x [m, d]."""
        last = torch.full((len(x),), len(self.modules) - 1)
        cross = self.map @ self.coregionalised(self.points, self.owner, x, last)
        mean, variance = conditional(self.fitted, cross, self.mixing[-1].square().sum())
        return mean, variance + self.modules[-1].noise
