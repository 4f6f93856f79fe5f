"""Expectation propagation with normal sites (thesis §3.4.2.2, Lemma 16, Algorithm 3.3).

A normal density is given by its natural parameters, `Params(r=Σ⁻¹μ [D], Q=Σ⁻¹ [D, D])`: products of densities are sums
of these, quotients are differences. (Lemma 16 calls r and Q "mean" and "variance"; they are neither.) Sites may have
any symmetric Q; the global approximation and every cavity must be positive definite.
"""

import torch
from torch import Tensor

from fedrepro.core.params import Params

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
    """(the normal density with the moments of draws [S, D] whose weights [S] sum to 1, whether the draws suffice: a
    boolean scalar).

    correction: (S − D − 2)/S times the inverse covariance, which is unbiased for independent draws.
    """
    size, dimension = draws.shape
    effective = 1 / weights.square().sum()
    mean = weights @ draws
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
    leaves q and all cavities positive definite; if η would fall below 1e-6, nothing changes and η is 0.

    Positive definite here means after subtracting half of the prior's precision: the mean of a barely positive definite
    cavity could be anywhere.
    """
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
