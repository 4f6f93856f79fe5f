"""Maximum likelihood to convergence: the limit of a method with a budget of rounds.

Minimises Σ_k p_k L_k(θ) (thesis eq. 4.3) over the full data of some devices, or L_k of one, by L-BFGS-B in log θ from
several starts; the best is kept. θ stays above `MINIMA`, which the released code adds after its softplus, and below
`MAXIMA` (assumed), beyond which the likelihood of scaled data is flat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.studies.fgpr.gp.exact import Data, Law, Theta, likelihood, predict

#: least lengthscale, variance and noise variance of the released code
MINIMA = (1e-6, 1e-6, 1e-4)
MAXIMA = (1e3, 1e6, 1e3)
#: (lengthscale, variance, noise variance) of the starts; lengthscales are multiples of √d
STARTS = ((0.2, 1.0, 0.01), (1.0, 1.0, 0.1), (0.05, 1.0, 0.1), (3.0, 3.0, 1e-3))
#: of baselines, inputs in [0, 1]: least noise, lengthscales of the first starts; SharedGP's least lengthscale, variance
NOISE_FLOOR, LENGTHSCALES, LEAST = 1e-6, (0.5, 0.1, 2.0), (1e-3, 1e-6)


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


def start_values(starts: int, lengthscales: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, float]]:
    """(lengthscales, noise variance) of each start: those of LENGTHSCALES with a noise of 1 %, then random ones."""
    yield from ((np.full(lengthscales, value), 1e-2) for value in LENGTHSCALES[:starts])
    for _ in range(starts - len(LENGTHSCALES)):
        yield np.exp(rng.uniform(np.log(0.1), np.log(3.0), lengthscales)), 10 ** rng.uniform(-4, -1)


@dataclass
class Effort:
    """The best value of a fit, its evaluations of the objective, how many failed or took jitter, and convergence."""

    value: float = -np.inf
    evaluations: int = 0
    failed: int = 0
    jittered: int = 0
    converged: bool = False

    def plus(self, other: Effort, last: bool = True) -> Effort:
        """Both together, ending where the higher value is; `last`: whether the other's end counts."""
        end = other if last and other.value > self.value else self
        counts = {name: getattr(self, name) + getattr(other, name) for name in ("evaluations", "failed", "jittered")}
        return Effort(end.value, converged=end.converged, **counts)


@dataclass
class SharedGP:
    """Processes with one θ, each conditioned on its own data (thesis eq. 4.1), at the maximum of Σ_k log p(y_k | θ),
    where Algorithm 4.1 would end with full batches, p_k = n_k/N and enough rounds. With one device this is Separate."""

    ard: bool = False
    noise_floor: float = NOISE_FLOOR
    starts: int = 3
    evaluations: int = 200

    def fit(self, data: Data, rng: np.random.Generator) -> SharedGP:
        self.data = list(data)
        dimensions = data[0][0].shape[-1]
        starts = [
            # `estimate` takes one lengthscale per start, in units of √d
            (float(lengthscale[0]) / np.sqrt(dimensions), 1.0, max(noise, 2 * self.noise_floor))
            for lengthscale, noise in start_values(self.starts, 1, rng)
        ]
        options: dict[str, Any] = {"ard": self.ard, "starts": starts, "iterations": self.evaluations}
        found = estimate("rbf", self.data, [1.0] * len(data), minima=(*LEAST, self.noise_floor), **options)
        self.theta: Theta = found.theta
        total = sum(len(y) for _, y in self.data)
        self.effort = Effort(-found.value / total, found.evaluations, converged=found.converged)
        return self

    def predict(self, x: Tensor, device: int = 0) -> Law:
        """The law of observations at x given one device's data."""
        return predict("rbf", self.theta, *self.data[device], x, noisy=True)
