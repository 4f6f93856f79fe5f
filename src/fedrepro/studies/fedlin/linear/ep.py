"""Expectation propagation with normal sites (thesis §3.4.2.2, Lemma 16, Algorithm 3.3).

A normal density is given by its natural parameters, `Params(r=Σ⁻¹μ [D], Q=Σ⁻¹ [D, D])`: products of densities are sums
of these, quotients are differences. (Lemma 16 calls r and Q "mean" and "variance"; they are neither.) Sites may have
any symmetric Q; the global approximation and every cavity must be positive definite.

`tilted` draws from a device's tilted distribution (eq. 3.6 and 3.10) for the normal hierarchy (§3.4.1, §3.5.2):

    y | θ ~ N(Xθ, σ²I),   θ | φ ~ N(μ, diag τ),   φ = (μ [d], log τ [d])

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

SHRINK, LEAST = 0.8, 1e-6  # factor on the damping until all is positive definite; below LEAST nothing is updated
KNOWN = 0.5  # share of the prior's precision that q and the cavities keep


def natural(mean: Tensor, covariance: Tensor) -> Params:
    """From mean [..., D] and covariance [..., D, D]."""
    precision = torch.linalg.inv_ex(covariance)[0]
    precision = (precision + precision.mT) / 2
    return Params(r=(precision @ mean[..., None])[..., 0], Q=precision)


def moments(density: Params) -> tuple[Tensor, Tensor]:
    """(mean [..., D], covariance [..., D, D])."""
    covariance = torch.linalg.inv_ex(density["Q"])[0]
    return (covariance @ density["r"][..., None])[..., 0], (covariance + covariance.mT) / 2


def positive_definite(precision: Tensor) -> bool:
    """Whether all matrices of [..., D, D] are positive definite, by Cholesky."""
    return bool((torch.linalg.cholesky_ex(precision).info == 0).all())


def tilted_from_draws(draws: Tensor, weights: Tensor, correction: bool) -> tuple[Params, Tensor]:
    """(the normal density with the moments of draws [S, D] whose weights [S] sum to 1, whether the draws suffice).
    correction: (S − D − 2)/S times the inverse covariance, which is unbiased for independent draws."""
    size, dimension = draws.shape
    mean, effective = weights @ draws, 1 / weights.square().sum()
    centred = draws - mean
    covariance = (weights[:, None] * centred).mT @ centred
    if correction and size > dimension + 2:
        covariance = covariance * (size / (size - dimension - 2))
    found = natural(mean, covariance)
    sound = torch.linalg.cholesky_ex(covariance).info == 0
    finite = found["r"].isfinite().all() & found["Q"].isfinite().all()
    return found, sound & finite & (effective > dimension + 2)


def total(prior: Params, sites: Params) -> Params:
    """q = prior × all sites; sites are stacked along the first axis."""
    return prior + Params({name: part.sum(0) for name, part in sites.items()})


def damped(prior: Params, sites: Params, changes: Params, damping: float) -> tuple[Params, float]:
    """(the new sites [K, …], the damping used): sites + η · changes, with η = damping · 0.8^j for the least j ≥ 0 that
    leaves q and all cavities positive definite, even without half of the prior's precision: the mean of a barely
    positive definite cavity could be anywhere. If η would fall below 1e-6, nothing changes and η is 0."""
    least = KNOWN * prior["Q"]
    while damping >= LEAST:
        new = sites.add(changes, alpha=damping)
        q = total(prior, new)
        if positive_definite(q["Q"] - least) and positive_definite(q["Q"] - new["Q"] - least):
            return new, damping
        damping *= SHRINK
    return sites, 0.0


def schedule(round: int, first: float, last: float, rounds: int) -> float:
    """Damping that falls from `first` to `last` by a constant factor per round, over `rounds` rounds."""
    return max(last, first * (last / first) ** (round / rounds)) if last < first else first


def matched_normals(z: Tensor) -> Tensor:
    """Normal numbers [S, D] with mirror images: [2S, D], of mean 0 and covariance I exactly."""
    factor = torch.linalg.cholesky_ex(z.mT @ z / len(z))[0]
    stretched = torch.linalg.solve_triangular(factor, z.mT, upper=False).mT
    return torch.cat([stretched, -stretched])


def conditional(data: Statistics, variance: Tensor, phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(log f(φ) up to a constant [S], mean of θ [S, d], Cholesky factor of its precision [S, d, d]) for φ [S, D]."""
    mu, log_tau = phi.split(len(data.moment), -1)
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
