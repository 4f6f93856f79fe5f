"""What "SGLD for noise-intrinsic federated learning" proves, on quadratics, where all of it is known without running.

Node i has F_i = ½xᵀH_i x − b_iᵀx + c_i. In (12) with β = 1 its integral is Gaussian, so (22)–(26) are equalities:

    log ∫ exp(−F_i(x') − ⟨λ_i, x' − x⟩ − γ/2‖x' − x‖²) dx' = −F_i(x) + ½‖λ_i + ∇F_i(x)‖²_[H_i+γI]⁻¹ + κ_i,
    κ_i = d/2·log 2π − ½·log det(H_i + γI)   (the paper prints log π)

- Theorem 4.1: slack of 𝓕 ≥ −(1/N)ΣF_i + (1/N)Σκ_i, and without the constants; the saddle point.
- Theorem 4.2: slack for Σλ_i = 0, and under the two conditions of which "either" is said to make it zero.
- Theorem 5.1: distance at `time` between the slow variables (x₀, λ) of the linear system (39)–(41), whose fast ones run
  1/`separation` times faster, and the averaged ones of (42), (43), by exact moments.
- Theorem 5.2: the slowest rate at which two coupled copies of (39)–(41) approach each other.
- §3.2: mean square error of the oracle's estimate with fixed and with decreasing steps, by exact moments.

β scales the noise's variance, as in Algorithm 2: dx_i has √(β/ε)·dB. Points x, λ are drawn from a fixed stream.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy.linalg import expm, solve_continuous_lyapunov
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Metric, Problem, Trial, limited, not_negative, positive
from fedrepro.core.model import Quadratic
from fedrepro.errors import UserError

DRAWS = 20


@dataclass(frozen=True)
class ExactQuadratics(Algorithm):
    gamma: float = positive(1.0)  # γ
    dual_rate: float = positive(1.0)  # γ₁
    separation: float = positive(0.1)  # ε of (41)
    time: float = positive(2.0)  # t
    lr: float = positive(0.05)
    beta: float = not_negative(0.5)  # β
    burn_in: int = not_negative(25)  # Q₀
    average: float = limited(0.9, lambda v: 0 <= v < 1, "the weight σ must lie in [0, 1)")  # σ
    iterative = False
    trial: ClassVar[Trial] = Trial()

    def metrics(self, problem: Problem, state: dict, round: int) -> Iterator[Metric]:
        if (q := problem.quadratics) is None:
            raise UserError("ExactQuadratics: the model must be linear")
        q = Quadratic(*(part.to(torch.float64) for part in q))
        measured = {**self._bounds(q), **self._slow_dynamics(q), **self._estimates(q, problem.steps)}
        yield from (Metric(name, value) for name, value in measured.items())

    def _bounds(self, q: Quadratic) -> dict[str, float]:
        """Slacks of Theorems 4.1 and 4.2: the smallest over random points, and at special ones."""
        nodes, d = q.linear.shape
        generator = torch.Generator().manual_seed(0)
        mean = Quadratic(q.curvature.mean(0, keepdim=True), q.linear.mean(0, keepdim=True), q.constant.mean()[None])
        alike = Quadratic(mean.curvature.expand_as(q.curvature), q.linear, q.constant)
        slack: dict[str, list[float]] = {name: [] for name in ("first", "literal", "second", "hessians", "gap", "both")}
        for _ in range(DRAWS):
            x, dual = (torch.randn(size, d, generator=generator, dtype=torch.float64) for size in (1, nodes))
            x, gradients = x[0], q.gradients(x.expand(nodes, d))
            value = self.objective(q, x, dual)
            slack["first"].append(value + float(losses(q, x).mean()) - float(self.constants(q).mean()))
            slack["literal"].append(self.objective(q, x, -gradients) + float(losses(q, x).mean()))
            centred = dual - dual.mean(0)
            whole = self.objective(mean, x, torch.zeros(1, d, dtype=torch.float64))
            slack["second"].append(self.objective(q, x, centred) - whole)
            slack["gap"].append(self.objective(q, x, gradients.mean(0) - gradients) - whole)
            tilted = alike.gradients(x.expand(nodes, d))
            same = self.objective(Quadratic(mean.curvature, mean.linear, alike.constant.mean()[None]), x, 0 * dual[:1])
            slack["hessians"].append(self.objective(alike, x, centred) - same)
            slack["both"].append(self.objective(alike, x, tilted.mean(0) - tilted) - same)
        best = q.minimiser()
        stays = self.averaged_drift(q, best, -q.gradients(best.expand(nodes, d)))
        return {
            "bound41_slack": min(slack["first"]),
            "bound41_literal": min(slack["literal"]),
            "bound42_slack": min(slack["second"]),
            "bound42_same_hessians": max(slack["hessians"]),
            "bound42_closed_gap": max(slack["gap"]),
            "bound42_both": max(map(abs, slack["both"])),
            "saddle_residual": float(stays.abs().max() / best.norm()),
        }

    def constants(self, q: Quadratic) -> Tensor:
        """κ_i [N]."""
        return q.linear.shape[1] / 2 * math.log(2 * math.pi) - 0.5 * torch.logdet(self.stiffened(q))

    def stiffened(self, q: Quadratic) -> Tensor:
        """H_i + γI."""
        return q.curvature + self.gamma * torch.eye(q.linear.shape[1], dtype=torch.float64)

    def objective(self, q: Quadratic, x: Tensor, dual: Tensor) -> float:
        """𝓕(x, λ) of (12) with β = 1: x [d], dual [N, d]."""
        tilt = dual + q.gradients(x.expand_as(dual))
        gain = 0.5 * (tilt * torch.linalg.solve(self.stiffened(q), tilt)).sum(1)
        return float((gain - losses(q, x) + self.constants(q)).mean())

    def averaged_drift(self, q: Quadratic, x: Tensor, dual: Tensor) -> Tensor:
        """(dx₀, dλ_1, …, dλ_N)/dt of (42), (43), with the mean of P_i(·|x₀) for x_i: [1 + N, d]."""
        means = torch.linalg.solve(self.stiffened(q), q.linear + self.gamma * x - dual)
        return torch.cat([((means + dual / self.gamma).mean(0) - x)[None], self.dual_rate * (means - x)])

    def _slow_dynamics(self, q: Quadratic) -> dict[str, float]:
        drift, shift, noise = self.linear_system(q)
        slow = q.linear.shape[1] * (1 + len(q.linear))
        averaged, shift_averaged = self.averaged_system(q)
        moved = affine_flow(averaged, shift_averaged, self.time)
        mean = affine_flow(drift, shift, self.time)[:slow]
        decay = torch.from_numpy(expm(drift.numpy() * self.time))
        forced = decay @ noise @ decay.T - noise
        covariance = torch.from_numpy(solve_continuous_lyapunov(drift.numpy(), forced.numpy()))
        spread = covariance.diagonal()[:slow].clamp(min=0).sum()
        return {
            "homogenisation_error": float(((mean - moved).square().sum() + spread).sqrt() / moved.norm()),
            "homogenisation_bias": float((mean - moved).norm() / moved.norm()),
            "contraction_rate": -float(torch.linalg.eigvals(drift).real.max()),
        }

    def linear_system(self, q: Quadratic) -> tuple[Tensor, Tensor, Tensor]:
        """(A, a, Q) of dz = (Az + a)dt + noise with covariance Q·dt, z = (x₀, λ_1 … λ_N, x_1 … x_N), (39)–(41)."""
        nodes, d = q.linear.shape
        eye, size = torch.eye(d, dtype=torch.float64), d * (1 + 2 * nodes)
        drift, shift = torch.zeros(size, size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
        server = slice(0, d)
        drift[server, server] = -eye
        fast = slice(d * (1 + nodes), size)
        noise = torch.zeros(size, dtype=torch.float64)
        noise[fast] = self.beta / self.separation
        for i in range(nodes):
            dual, own = (slice(d * (k + i), d * (k + i + 1)) for k in (1, 1 + nodes))
            drift[server, dual], drift[server, own] = eye / (self.gamma * nodes), eye / nodes
            drift[dual, server], drift[dual, own] = -self.dual_rate * eye, self.dual_rate * eye
            drift[own, own] = -self.stiffened(q)[i] / self.separation
            drift[own, server], drift[own, dual] = self.gamma * eye / self.separation, -eye / self.separation
            shift[own] = q.linear[i] / self.separation
        return drift, shift, torch.diag(noise)

    def averaged_system(self, q: Quadratic) -> tuple[Tensor, Tensor]:
        """(A, a) of the averaged slow variables (42), (43), from `averaged_drift`, which is affine."""
        nodes, d = q.linear.shape
        zero = torch.zeros(1 + nodes, d, dtype=torch.float64)
        shift = self.averaged_drift(q, zero[0], zero[1:]).flatten()
        units = torch.eye(shift.numel(), dtype=torch.float64).view(-1, 1 + nodes, d)
        columns = [self.averaged_drift(q, unit[0], unit[1:]).flatten() - shift for unit in units]
        return torch.stack(columns, 1), shift

    def _estimates(self, q: Quadratic, steps: int) -> dict[str, float]:
        """E‖x̂_i − E_P x‖² of the oracle (Algorithm 2) from x₀ = 0 with λ_i = 0, mean over the nodes."""
        stiff = self.stiffened(q)
        h, base = torch.linalg.eigh(stiff)
        start = -(base.transpose(1, 2) @ torch.linalg.solve(stiff, q.linear)[..., None])[..., 0]  # x₀ − mean, rotated
        decays = {"fixed": 0.0, "decreasing": 1 / 3}
        return {
            f"mse_{name}": float(self.error(h, start, steps, decay).sum(1).mean()) for name, decay in decays.items()
        }

    def error(self, h: Tensor, start: Tensor, steps: int, decay: float) -> Tensor:
        """E x̂² of x ← (1 − ηh)x + √(ηβ)·N(0, 1) from `start`, with x̂ averaged as in Algorithm 2; shape of h."""
        x, estimate = start, start
        xx, xe, ee = (torch.zeros_like(h) for _ in range(3))  # covariances of x and x̂
        for step in range(steps):
            eta = self.lr * (step - self.burn_in) ** -decay if step > self.burn_in else self.lr
            x, xx, xe = (1 - eta * h) * x, (1 - eta * h) ** 2 * xx + eta * self.beta, (1 - eta * h) * xe
            s = self.average if step > self.burn_in else 0.0
            ee = s**2 * ee + 2 * s * (1 - s) * xe + (1 - s) ** 2 * xx
            xe, estimate = s * xe + (1 - s) * xx, s * estimate + (1 - s) * x
        return estimate**2 + ee


def losses(q: Quadratic, x: Tensor) -> Tensor:
    """F_i(x) [N]."""
    return x @ (0.5 * q.curvature @ x[..., None])[..., 0].T - q.linear @ x + q.constant


def affine_flow(drift: Tensor, shift: Tensor, time: float) -> Tensor:
    """z(time) of dz/dt = drift·z + shift from z = 0."""
    size = len(shift)
    whole = torch.zeros(size + 1, size + 1, dtype=torch.float64)
    whole[:size, :size], whole[:size, size] = drift, shift
    return torch.from_numpy(expm(whole.numpy() * time))[:size, size]
