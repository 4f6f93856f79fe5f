"""Exact Gaussian process regression, many at once (thesis "Federated Data Analytics", 2023, §4.3.1, eq. 4.1 and 4.2).

The model: y = f(x) + ε, f ~ GP(0, θ₁² k(·, ·; l)), ε ~ N(0, θ₂²). With C = θ₁² k(X, X) + θ₂² I,

    negative log-likelihood   L = ½ (yᵀC⁻¹y + log|C| + n log 2π)
    its gradient              ∂L = ½ Tr[C⁻¹ (I − y yᵀC⁻¹) ∂C]
    prediction                mean = k*ᵀC⁻¹y,  variance = θ₁² k(x*, x*) − k*ᵀC⁻¹k*

k is gpytorch's. One Cholesky factorisation gives C⁻¹, and autograd only ∂C: differentiating through the factorisation
would cost several times as much.

Shapes: leading axes "*" (repeats, devices of equal size) are batch axes of one factorisation. x [*, n, d], y [*, n].

A C that is not positive definite to working precision (duplicate inputs, tiny noise) gets the least jitter that helps
on its diagonal, and a warning is logged. Values that are not finite stay so, which shows divergence to the caller.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from fedrepro.errors import UserError

#: (x [n_k, d], y [n_k]) per device or level
Data = Sequence[tuple[Tensor, Tensor]]
#: mean and variance at m inputs: [*, m], [*, m]
Law = tuple[Tensor, Tensor]
#: first and last jitter tried, relative to the mean of the diagonal
JITTER = (1e-12, 1e-2)
#: bytes of one [*, n, n] array; a larger batch is cut into pieces (about six such arrays are alive at a time)
PIECE_BYTES = 2**27

log = logging.getLogger(__name__)


class Theta(NamedTuple):
    """Hyper-parameters on their natural scale: lengthscale [*, 1] or (ARD) [*, d], variance θ₁² [*], noise θ₂² [*]."""

    lengthscale: Tensor
    variance: Tensor
    noise: Tensor


class Fit(NamedTuple):
    """A device's data under a θ: the factor of C [*, n, n], C⁻¹y [*, n] and the jitter on C's diagonal [*]."""

    factor: Tensor
    weights: Tensor
    jitter: Tensor


class Likelihood(NamedTuple):
    value: Tensor  # L [*]
    gradient: Theta


def correlation(name: str, lengthscale: Tensor, x1: Tensor, x2: Tensor) -> Tensor:
    """k(x1, x2; l): lengthscale [*, 1] or [*, d], x1 [*, n, d], x2 [*, m, d] → [*, n, m]."""
    from fedrepro.studies.fgpr.gp.kernels import natural_kernel  # importing gpytorch is slow, and few jobs need it

    kernel = natural_kernel(name, ard=lengthscale.shape[-1] > 1)
    return functional_call(kernel, {"kernel.raw_lengthscale": lengthscale.unsqueeze(-2)}, (x1, x2))


def covariance(name: str, theta: Theta, x1: Tensor, x2: Tensor) -> Tensor:
    """θ₁² k(x1, x2), without noise: [*, n, m]."""
    return theta.variance[..., None, None] * correlation(name, theta.lengthscale, x1, x2)


def cholesky(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The lower factors of [*, n, n] and the jitter [*] on each diagonal (0 where none was needed)."""
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if not failed.any():
        return factor, matrix.new_zeros(matrix.shape[:-2])
    n = matrix.shape[-1]
    flat, factors = matrix.reshape(-1, n, n), factor.reshape(-1, n, n).clone()
    jitter = matrix.new_zeros(len(flat))
    scale = flat.diagonal(dim1=-2, dim2=-1).mean(-1).abs().clamp_min(torch.finfo(matrix.dtype).tiny)
    finite = flat.isfinite().all(-1).all(-1)
    factors[~finite] = torch.nan
    (broken,) = torch.nonzero((failed.flatten() > 0) & finite, as_tuple=True)
    relative, last = JITTER
    while len(broken):
        if relative > last:
            raise UserError(f"gp: a covariance matrix is not positive definite, even with a jitter of {last:g}")
        jitter[broken] = relative * scale[broken]
        lifted = flat[broken] + jitter[broken][:, None, None] * torch.eye(n).to(matrix)
        factors[broken], failed = torch.linalg.cholesky_ex(lifted)
        broken = broken[failed > 0]
        relative *= 10
    many = int((jitter > 0).sum())
    if many:
        log.warning("jitter of up to %.1e on %d of %d covariance matrices", jitter.max().item(), many, len(flat))
    return factors.reshape(factor.shape), jitter.reshape(matrix.shape[:-2])


def fit(name: str, theta: Theta, x: Tensor, y: Tensor) -> Fit:
    return fit_covariance(_with_noise(covariance(name, theta, x, x), theta.noise), y)


def fit_covariance(c: Tensor, y: Tensor) -> Fit:
    """Condition on data y [*, n] of covariance C [*, n, n], noise included."""
    factor, jitter = cholesky(c)
    return Fit(factor, torch.cholesky_solve(y[..., None], factor)[..., 0], jitter)


def conditional(fitted: Fit, cross: Tensor, prior: Tensor) -> Law:
    """The law at inputs of covariance `cross` [*, n, m] with the data and of prior variance `prior` [*, m]."""
    mean = (cross.mT @ fitted.weights[..., None])[..., 0]
    explained = torch.linalg.solve_triangular(fitted.factor, cross, upper=False).square().sum(-2)
    return mean, (prior - explained).clamp_min(0)  # below 0 by rounding only


def log_density(factor: Tensor, y: Tensor) -> Tensor:
    """log N(y; 0, C) / n, differentiable in the factor of C [n, n]."""
    white = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
    half = 0.5 * white.square().sum() + factor.diagonal().log().sum()
    return -half / len(y) - 0.5 * math.log(2 * math.pi)


def likelihood(name: str, theta: Theta, x: Tensor, y: Tensor, mask: Tensor | None = None) -> Likelihood:
    """L and ∂L/∂θ of each member of the batch. mask [*, n]: rows with 0 are left out, so ragged sizes can be padded."""
    batch = torch.broadcast_shapes(theta.variance.shape, x.shape[:-2], y.shape[:-1])

    def flat(value: Tensor, axes: int) -> Tensor:
        """All batch axes as one, before the last `axes` axes."""
        own = value.shape[value.ndim - axes :]
        return value.expand((*batch, *own)).reshape((-1, *own))

    theta = Theta(flat(theta.lengthscale, 1), flat(theta.variance, 0), flat(theta.noise, 0))
    x, y, mask = flat(x, 2), flat(y, 1), None if mask is None else flat(mask, 1)
    found = [
        _likelihood(name, Theta(*(t[piece] for t in theta)), x[piece], y[piece], None if mask is None else mask[piece])
        for piece in pieces(len(x), x.shape[-2], x.element_size())
    ]
    value, lengthscale, variance, noise = (torch.cat(parts) for parts in zip(*found, strict=True))
    gradient = Theta(lengthscale.reshape(*batch, -1), variance.reshape(batch), noise.reshape(batch))
    return Likelihood(value.reshape(batch), gradient)


def predict(name: str, theta: Theta, x: Tensor, y: Tensor, x_new: Tensor, noisy: bool = False) -> Law:
    """Mean and variance [*, m] of f at x_new [*, m, d], or of an observation there with `noisy`."""
    return predict_from(name, theta, fit(name, theta, x, y), x, x_new, noisy)


def predict_from(name: str, theta: Theta, fitted: Fit, x: Tensor, x_new: Tensor, noisy: bool = False) -> Law:
    """As `predict`, after conditioning on the data."""
    mean, variance = conditional(fitted, covariance(name, theta, x, x_new), theta.variance[..., None])
    return mean, variance + theta.noise[..., None] if noisy else variance


def pieces(batch: int, n: int, element: int = 8) -> Iterator[slice]:
    """Slices of a batch of n × n matrices, none of them above `PIECE_BYTES`."""
    size = max(1, PIECE_BYTES // max(1, n * n * element))
    return (slice(start, start + size) for start in range(0, batch, size))


def _likelihood(name: str, theta: Theta, x: Tensor, y: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
    """L and its gradient in lengthscale, variance and noise; one batch axis."""
    lengthscale = theta.lengthscale.detach().requires_grad_()
    with torch.enable_grad():
        k = correlation(name, lengthscale, x, x)
    signal = theta.variance[:, None, None] * k.detach()
    y = y if mask is None else y * mask
    factor, weights, _ = fit_covariance(_with_noise(signal, theta.noise, mask), y)
    count = x.shape[-2] if mask is None else mask.sum(-1)
    log_determinant = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    value = 0.5 * ((y * weights).sum(-1) + log_determinant + count * math.log(2 * math.pi))
    outer = 0.5 * (torch.cholesky_inverse(factor) - weights[:, :, None] * weights[:, None, :])  # ∂L/∂C
    if mask is not None:
        outer = outer * mask[:, :, None] * mask[:, None, :]
    (by_lengthscale,) = torch.autograd.grad(k, lengthscale, outer * theta.variance[:, None, None])
    by_variance = (outer * k.detach()).sum((-2, -1))
    return value, by_lengthscale, by_variance, outer.diagonal(dim1=-2, dim2=-1).sum(-1)


def _with_noise(signal: Tensor, noise: Tensor, mask: Tensor | None = None) -> Tensor:
    """C; a row that does not count becomes one of the identity, which adds nothing to L."""
    diagonal = noise[..., None].expand(signal.shape[:-1])
    if mask is not None:
        signal = signal * mask[..., :, None] * mask[..., None, :]
        diagonal = torch.where(mask > 0, diagonal, 1.0)
    c = signal.clone()
    c.diagonal(dim1=-2, dim2=-1).add_(diagonal)
    return c
