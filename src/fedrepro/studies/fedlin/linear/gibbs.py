"""Draws from a device's tilted distribution (thesis eq. 3.6 and 3.10) for penalised regression (§3.4.3).

    y | θ, φ ~ N(Xθ, σ²I),   θ_j | φ ~ Laplace or normal,   φ = (u, v) = (log λ, log σ²) ~ the cavity, a normal law

`PENALTIES` gives p(θ | φ) ∝ exp(α(u − cv) − s(θ)·exp(u − cv)) for
- lasso: Laplace with diversity σ/λ: α = d, c = ½, s = Σ|θ_j|
- ridge: N(0, σ²/λ): α = d/2, c = 1, s = Σθ_j²/2
- ridge_printed: N(0, σ/λ), as the thesis prints it: α = d/2, c = ½, s = Σθ_j²/2

A sweep draws in blocks, each from its exact conditional law or by a step that leaves this law invariant:
1. lasso: 1/ω_j | θ, φ, inverse Gaussian (Park and Casella 2008: θ_j | ω_j ~ N(0, σ²ω_j), ω_j ~ Exp(λ²/2) is Laplace);
2. θ | ω, φ, y, normal;
3. φ | θ, y, with ω integrated out: two-dimensional and log-concave. An independence Metropolis step, from a t law with
   4 degrees of freedom at the mode, found by Newton steps from a start that depends on θ and the cavity only.
The thesis leaves the sampler open; NUTS on each device would take hours instead of seconds. All randomness of a device
enters as standard normal numbers [sweeps, chains · width(d)]; everything runs under `torch.func.vmap`.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear.devices import Statistics
from fedrepro.studies.fedlin.linear.ep import moments

NEWTON_STEPS, LONGEST_STEP, FREEDOM = 5, 2.0, 4


class Penalty(NamedTuple):
    share: float  # α/d
    power: float  # c
    size: Callable[[Tensor], Tensor]  # s: [..., d] → [...]


PENALTIES = {
    "lasso": Penalty(1.0, 0.5, lambda theta: theta.abs().sum(-1)),
    "ridge": Penalty(0.5, 1.0, lambda theta: theta.square().sum(-1) / 2),
    "ridge_printed": Penalty(0.5, 0.5, lambda theta: theta.square().sum(-1) / 2),
}


class Chains(NamedTuple):
    theta: Tensor  # [C, d]
    phi: Tensor  # [C, 2]


def width(predictors: int) -> int:
    """Normal numbers per sweep of a chain."""
    return 3 * predictors + 2 + FREEDOM + 1


def start(data: Statistics, chains: int) -> Chains:
    """Every chain near least squares, its residual variance, and the λ of ridge that fits the size of θ."""
    d = len(data.moment)
    level = 1e-6 * data.gram.diagonal().mean() + 1e-12
    theta = torch.linalg.solve(data.gram + level * torch.eye(d).to(data.gram), data.moment)
    v = ((residual_square(data, theta) + 1e-6 * (data.square + 1)) / (data.n - d).clamp(min=1)).log()
    u = v - ((theta.square().sum() + v.exp()) / d).log()
    return Chains(theta.repeat(chains, 1), torch.stack([u, v]).repeat(chains, 1))


def sweeps(kind: str, data: Statistics, cavity: Params, chains: Chains, noise: Tensor) -> tuple[Tensor, Tensor, Chains]:
    """(θ [T, C, d], φ [T, C, 2] after each of the T sweeps, the chains' ends)."""
    penalty, (count, d) = PENALTIES[kind], chains.theta.shape
    draw_theta = laplace_theta if kind == "lasso" else normal_theta(data, penalty)
    (theta, phi), found = chains, []
    z, z_scale, z_branch, z_phi, chi, z_accept = noise.view(len(noise), count, -1).split([d, d, d, 2, FREEDOM, 1], -1)
    stretched = z_phi * (FREEDOM / chi.square().sum(-1, keepdim=True)).sqrt()  # of a t law
    numbers = (z, z_scale.square() / 2, log_uniform(z_branch), stretched, log_uniform(z_accept[..., 0]))
    centre, alpha = moments(cavity)[0], penalty.share * d
    for *block, z_t, accept in zip(*(part.unbind(0) for part in numbers), strict=True):
        theta = draw_theta(data, theta, phi, *block)
        half, size = residual_square(data, theta) / 2, penalty.size(theta)
        target = Conditional(cavity["r"], cavity["Q"], data.n / 2, half, alpha, penalty.power, size)
        phi = metropolis(target, centre, phi, z_t, accept)
        found.append((theta, phi))
    thetas, phis = map(torch.stack, zip(*found, strict=True))
    return thetas, phis, Chains(theta, phi)


def residual_square(data: Statistics, theta: Tensor) -> Tensor:
    """‖y − Xθ‖² for θ [..., d]: [...]."""
    return (data.square + ((theta @ data.gram - 2 * data.moment) * theta).sum(-1)).clamp(min=0)


def log_uniform(z: Tensor) -> Tensor:
    """The logarithm of a uniform number, from a normal one."""
    return (torch.erfc(-z / 2**0.5) / 2).log()


def inverse_gaussian(mean: Tensor, shape: Tensor, half_square: Tensor, log_uniform: Tensor) -> Tensor:
    """Michael, Schucany and Haas (1976), without their cancellation for large means."""
    t = mean * half_square / shape
    small = 1 / (1 + t + (t * (t + 2)).sqrt())  # the smaller root, as a share of the mean
    return mean * torch.where(log_uniform <= -small.log1p(), small, 1 / small)


def laplace_theta(
    data: Statistics, theta: Tensor, phi: Tensor, z: Tensor, half_square: Tensor, branch: Tensor
) -> Tensor:
    """Blocks 1 and 2 for the Laplace prior: [C, d]."""
    lam, sigma = phi[:, :1].exp(), (phi[:, 1:] / 2).exp()
    mean = lam * sigma / theta.abs().clamp(min=1e-150)
    weights = inverse_gaussian(mean, lam.square(), half_square, branch)  # 1/ω
    # a larger weight would pin θ_j to 0 just the same; the cap keeps the sum finite
    precision = data.gram + torch.diag_embed(weights.clamp(max=1e12 * (1 + data.gram.diagonal().amax())))
    factor = torch.linalg.cholesky_ex(precision)[0]
    half = torch.linalg.solve_triangular(factor, data.moment.expand_as(z)[..., None], upper=False)
    return torch.linalg.solve_triangular(factor.mT, half + sigma[..., None] * z[..., None], upper=True)[..., 0]


def normal_theta(data: Statistics, penalty: Penalty) -> Callable[..., Tensor]:
    """Block 2 for the normal prior, whose precision is a scalar: all chains and sweeps share the eigenvectors."""
    values, vectors = torch.linalg.eigh(data.gram)
    values, moment = values.clamp(min=0), data.moment @ vectors

    def draw(data: Statistics, theta: Tensor, phi: Tensor, z: Tensor, *unused: Tensor) -> Tensor:
        u, v = phi[:, :1], phi[:, 1:]
        precision = values + (u + (1 - penalty.power) * v).exp()  # times σ²
        return (moment / precision + (v / 2).exp() * z / precision.sqrt()) @ vectors.mT

    return draw


class Conditional(NamedTuple):
    """log p(φ | θ, y) up to a constant, for C chains."""

    r: Tensor  # [2]
    Q: Tensor  # [2, 2]
    half_n: Tensor
    half_residual: Tensor  # [C]
    alpha: float
    power: float
    size: Tensor  # [C]

    def terms(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """(½‖y − Xθ‖²/σ², s(θ)·exp(u − cv)): [..., C] each."""
        return self.half_residual * (-v).exp(), self.size * (u - self.power * v).exp()

    def value(self, phi: Tensor) -> Tensor:
        """Of φ [..., C, 2]: [..., C]."""
        u, v = phi.unbind(-1)
        fit, prior = self.terms(u, v)
        normal = ((self.r - phi @ self.Q / 2) * phi).sum(-1)
        return normal - self.half_n * v - fit + self.alpha * (u - self.power * v) - prior


def metropolis(target: Conditional, centre: Tensor, phi: Tensor, z: Tensor, log_uniform: Tensor) -> Tensor:
    """Block 3, an independence Metropolis step: phi [C, 2] → [C, 2]. centre: the cavity's mean; z [C, 2]: t numbers."""
    mode, (a, b, c) = _mode(target, centre)
    # by the Cholesky factor of [[a, b], [b, c]]
    second = z[:, 1] / (c - b.square() / a).sqrt()
    first = z[:, 0] / a.sqrt() - b / a * second
    proposal = mode + torch.stack([first, second], -1)
    both = torch.stack([proposal, phi])
    du, dv = (both - mode).unbind(-1)
    form = a * du.square() + 2 * b * du * dv + c * dv.square()
    gain = target.value(both) + (FREEDOM + 2) / 2 * (form / FREEDOM).log1p()
    accept = log_uniform < gain[0] - gain[1]  # false where anything is not a number
    return torch.where(accept[:, None], proposal, phi)


def _mode(target: Conditional, centre: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The approximate mode [C, 2], and minus the Hessian there: (uu, uv, vv), [C] each."""
    c = target.power  # in the start, the cavity counts as one more sample
    v = ((2 * target.half_residual + centre[1].exp()) / (2 * target.half_n + 1)).log()
    u = c * v + ((target.alpha + 1) / (target.size + (c * v - centre[0]).exp())).log()
    (r_u, r_v), (q_uu, q_uv, _, q_vv) = target.r.unbind(), target.Q.flatten().unbind()
    for last in [False] * NEWTON_STEPS + [True]:
        fit, prior = target.terms(u, v)
        h_uu, h_uv, h_vv = q_uu + prior, q_uv - c * prior, q_vv + fit + c * c * prior
        if last:
            return torch.stack([u, v], -1), (h_uu, h_uv, h_vv)
        excess = target.alpha - prior
        g_u = r_u - q_uu * u - q_uv * v + excess
        g_v = r_v - q_uv * u - q_vv * v - target.half_n + fit - c * excess
        determinant = h_uu * h_vv - h_uv * h_uv
        u = u + ((h_vv * g_u - h_uv * g_v) / determinant).clamp(-LONGEST_STEP, LONGEST_STEP)
        v = v + ((h_uu * g_v - h_uv * g_u) / determinant).clamp(-LONGEST_STEP, LONGEST_STEP)
    raise AssertionError
