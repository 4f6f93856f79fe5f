"""Draws from a device's tilted distribution (thesis eq. 3.6 and 3.10) for the normal hierarchy (§3.4.1, §3.5.2).

    y | θ ~ N(Xθ, σ²I),   θ | φ ~ N(μ, diag τ),   φ = (μ [d], log τ [d], or one log τ for all)

Here f(φ) = ∫ p(y | θ) p(θ | φ) dθ has a closed form: with T = diag τ, P = T⁻¹ + XᵀX/σ² and h = T⁻¹μ + Xᵀy/σ²,

    log f(φ) = −½ log|T| − ½ log|P| − ½ μᵀT⁻¹μ + ½ hᵀP⁻¹h + constant,   θ | φ, y ~ N(P⁻¹h, P⁻¹),

so only φ is sampled, by importance: draws of the current q(φ), the best guess of the tilted distribution, with weights
f/q_k. The draws come in pairs ± and are stretched to the exact mean and covariance of q: a correct site stays as it is,
and the errors of many devices do not add up.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear.devices import Statistics
from fedrepro.studies.fedlin.linear.ep import moments


def scales(phi: Tensor, predictors: int) -> tuple[Tensor, Tensor]:
    """(μ [..., d], log τ [..., d]) of φ [..., 2d] or, with one variance for all, [..., d + 1]."""
    mean, log_tau = phi[..., :predictors], phi[..., predictors:]
    return mean, log_tau.expand(mean.shape)


def matched_normals(z: Tensor) -> Tensor:
    """Normal numbers [S, D] with mirror images: [2S, D], of mean 0 and covariance I exactly."""
    factor = torch.linalg.cholesky_ex(z.mT @ z / len(z))[0]
    stretched = torch.linalg.solve_triangular(factor, z.mT, upper=False).mT
    return torch.cat([stretched, -stretched])


def conditional(data: Statistics, variance: Tensor, phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(log f(φ) up to a constant [S], mean of θ [S, d], Cholesky factor of its precision [S, d, d]) for φ [S, D]."""
    mu, log_tau = scales(phi, len(data.moment))
    inverse = (-log_tau).exp()
    factor = torch.linalg.cholesky_ex(data.gram / variance + torch.diag_embed(inverse))[0]
    h = inverse * mu + data.moment / variance
    half = torch.linalg.solve_triangular(factor, h[..., None], upper=False)[..., 0]
    mean = torch.linalg.solve_triangular(factor.mT, half[..., None], upper=True)[..., 0]
    half_log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_f = half.square().sum(-1) / 2 - (inverse * mu.square() + log_tau).sum(-1) / 2 - half_log_determinant
    return log_f, mean, factor


def tilted(
    data: Statistics, variance: Tensor, q: Params, site: Params, z: Tensor, z_theta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(φ [2S, D], θ [2S, d], weights [2S]) from normal numbers z [S, D] and z_theta [2S, d]."""
    mean, covariance = moments(q)
    phi = mean + matched_normals(z) @ torch.linalg.cholesky_ex(covariance)[0].mT
    log_f, centre, factor = conditional(data, variance, phi)
    log_site = ((site["r"] - phi @ site["Q"] / 2) * phi).sum(-1)
    weights = torch.softmax(log_f - log_site, 0)
    theta = centre + torch.linalg.solve_triangular(factor.mT, z_theta[..., None], upper=True)[..., 0]
    return phi, theta, weights


def residual_variance(devices: Iterable[Statistics]) -> Tensor | None:
    """σ² from the residuals of devices with more samples than predictors: sums of squares of their separate fits over
    the sum of their n − d. None without such a device."""
    squares, freedom = torch.zeros(()), 0.0
    for data in devices:
        spare = float(data.n) - len(data.moment)
        if spare > 0:
            theta = torch.linalg.lstsq(data.gram, data.moment[:, None], driver="gelsd").solution[:, 0]
            squares, freedom = squares.to(theta) + (data.square - theta @ data.moment).clamp(min=0), freedom + spare
    return squares / freedom if freedom else None
