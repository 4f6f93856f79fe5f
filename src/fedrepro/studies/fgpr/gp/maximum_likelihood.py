"""Maximum likelihood to convergence: the limit of a method with a budget of rounds.

Minimises Σ_k p_k L_k(θ) (thesis eq. 4.3) over the full data of some devices, or L_k of one, by L-BFGS-B in log θ from
several starts; the best is kept. θ stays above `MINIMA`, which the released code adds after its softplus, and below
`MAXIMA` (assumed), beyond which the likelihood of scaled data is flat.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.studies.fgpr.gp.exact import Data, Theta, likelihood

#: least lengthscale, variance and noise variance of the released code
MINIMA = (1e-6, 1e-6, 1e-4)
MAXIMA = (1e3, 1e6, 1e3)
#: (lengthscale, variance, noise variance) of the starts; lengthscales are multiples of √d
STARTS = ((0.2, 1.0, 0.01), (1.0, 1.0, 0.1), (0.05, 1.0, 0.1), (3.0, 3.0, 1e-3))


class Estimate(NamedTuple):
    """θ, the objective there, evaluations of all starts, and whether the best of them converged."""

    theta: Theta
    value: float
    evaluations: int
    converged: bool


def estimate(
    name: str,
    devices: Data,
    weights: Sequence[float] | np.ndarray | None = None,
    *,
    ard: bool = False,
    minima: Sequence[float] = MINIMA,
    starts: Sequence[Sequence[float]] = STARTS,
    iterations: int = 200,
    lengthscale: Tensor | None = None,
) -> Estimate:
    """θ, without batch axes, of the kernel `name` on the devices' data.

    weights: p_k, by default equal; lengthscale [p]: if known, only the variances are estimated.
    """
    from scipy.optimize import minimize  # importing it is slow, and few jobs need it

    p_k = np.full(len(devices), 1 / len(devices)) if weights is None else np.asarray(weights, dtype=np.float64)
    dimensions = devices[0][0].shape[-1]
    p = dimensions if ard else 1
    stacks = _by_size(devices, p_k)
    count = float(sum(w * len(y) for w, (_, y) in zip(p_k, devices, strict=True)))
    fixed = np.empty(0) if lengthscale is None else np.log(lengthscale.numpy())

    def theta_at(log_theta: np.ndarray) -> Theta:
        values = torch.from_numpy(np.exp(log_theta)).to(stacks[0][0])
        return Theta(values[:p], values[p], values[p + 1])

    def objective(free: np.ndarray) -> tuple[float, np.ndarray]:
        log_theta = np.append(fixed, free)
        theta = theta_at(log_theta)
        value, gradient = 0.0, np.zeros(p + 2)
        for x, y, w in stacks:
            at = likelihood(name, theta, x, y)
            value += (w @ at.value).item()
            gradient += torch.cat([w @ at.gradient.lengthscale, (w @ torch.stack(at.gradient[1:], -1))]).numpy()
        # over the samples, so that one tolerance serves devices of all sizes
        return value / count, (gradient * np.exp(log_theta) / count)[len(fixed) :]

    limits = np.log(np.stack([minima, MAXIMA], axis=1))
    bounds = np.repeat(limits, [p, 1, 1], axis=0)[len(fixed) :]
    options = {"maxiter": iterations, "ftol": 1e-10, "gtol": 1e-6}
    best: Any = None
    evaluations = 0
    for scale, variance, noise in starts if lengthscale is None else starts[:1]:  # the variances have one maximum
        start = np.log([*[scale * np.sqrt(dimensions)] * p, variance, max(noise, minima[2])])[len(fixed) :]
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        evaluations += found.nfev
        if best is None or found.fun < best.fun:
            best = found
    return Estimate(theta_at(np.append(fixed, best.x)), float(best.fun) * count, evaluations, bool(best.success))


def _by_size(devices: Data, weights: np.ndarray) -> list[list[Tensor]]:
    """Devices of equal size as batches: x [k, n, d], y [k, n], weights [k]; those of weight 0 are left out."""
    groups = defaultdict(list)
    for (x, y), w in zip(devices, weights, strict=True):
        if w > 0:
            groups[len(y)].append((x, y, torch.tensor(w).to(x)))
    return [[torch.stack(part) for part in zip(*group, strict=True)] for group in groups.values()]
