"""Multitask relationship learning (Zhang and Yeung 2012), the common practice that thesis §3.3 builds on.

Θ and the covariance Ω between devices are learned together, Ω as a convex problem with a penalty on its trace:

    min over Θ, Ω of  Σ_k ‖Y_k − X_kᵀθ_k‖²/(2N) + (λ/2)(tr(ΘΩ⁻¹Θᵀ) + tr Ω),   N the number of all samples.

The best Ω is (ΘᵀΘ)^½ and leaves λ‖Θ‖_*, the sum of Θ's singular values; accelerated proximal steps shrink these by λ/L.
λ is chosen among SHARES of the least λ that gives Θ = 0: by the error on every fourth sample of each device, which does
not train then. Neither Ω nor the noise need be known.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

SHARES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)  # assumed: from much sharing to little
STEPS = 200  # per λ, each from the last one's Θ
HELD = 4


def summed(x: Sequence[Tensor], y: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Σ xxᵀ [K, d, d] and Σ xy [K, S, d], divided by the number of all samples; x [n, d], y [n, S] by device."""
    total = sum(len(own) for own in x)
    gram = torch.stack([own.T @ own for own in x]) / total
    return gram, torch.stack([mine.T @ own for own, mine in zip(x, y, strict=True)]) / total


def shrunk(theta: Tensor, by: Tensor) -> Tensor:
    """The singular values of Θ [S, K, d] reduced by `by` [S], or to 0."""
    u, singular, v = torch.linalg.svd(theta, full_matrices=False)
    return (u * (singular - by[:, None]).clamp(min=0)[:, None]) @ v


def fitted(gram: Tensor, moment: Tensor, penalty: Tensor, theta: Tensor, steps: int = STEPS) -> Tensor:
    """Θ [S, K, d] of least penalised error for λ [S], from a start: FISTA with the step 1/L."""
    largest = torch.linalg.eigvalsh(gram)[:, -1].max()
    target, ahead, momentum = moment.transpose(0, 1), theta, 1.0
    for _ in range(steps):
        gradient = torch.einsum("kij,skj->ski", gram, ahead) - target
        new = shrunk(ahead - gradient / largest, penalty / largest)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead, theta = new + (momentum - 1) / following * (new - theta), new
        momentum = following
    return theta


def multitask(x: Sequence[Tensor], y: Sequence[Tensor]) -> Tensor:
    """Θ [K, d, S], each output with its own λ."""
    kept = [torch.arange(len(own)) % HELD != HELD - 1 for own in x]
    part = summed([own[k] for own, k in zip(x, kept, strict=True)], [own[k] for own, k in zip(y, kept, strict=True)])
    gram, moment = summed(
        [own[~k] for own, k in zip(x, kept, strict=True)], [own[~k] for own, k in zip(y, kept, strict=True)]
    )
    whole = summed(x, y)
    zero = torch.zeros_like(whole[1].transpose(0, 1))
    theta, best, error = zero, torch.zeros(len(zero)).to(zero), torch.full((len(zero),), torch.inf).to(zero)
    for share in SHARES:
        theta = fitted(*part, share * _least(part[1]), theta)
        found = (theta * (torch.einsum("kij,skj->ski", gram, theta) - 2 * moment.transpose(0, 1))).sum((1, 2))
        best = torch.where(found < error, torch.full_like(best, share), best)
        error = torch.minimum(found, error)
    theta = fitted(*whole, best * _least(whole[1]), theta, 2 * STEPS)
    return theta.permute(1, 2, 0)


def _least(moment: Tensor) -> Tensor:
    """The least λ with Θ = 0, per output: the largest singular value of the gradient there."""
    return torch.linalg.matrix_norm(moment.transpose(0, 1), ord=2)
