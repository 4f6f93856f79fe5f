"""gpytorch's kernels and likelihoods as the baselines use them, and where their searches start."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood

from fedrepro.errors import UserError, nearest

KERNELS = ("rbf", "matern32")
NOISE_FLOOR = 1e-6
LENGTHSCALES = (0.5, 0.1, 2.0)  # of the first starts, for inputs in [0, 1]


def base_kernel(name: str, **options: Any) -> Kernel:
    """gpytorch's kernel k(x, x') of variance 1."""
    if name not in KERNELS:
        raise UserError(f"gp: kernel = '{name}' is unknown{nearest(name, KERNELS)}")
    return RBFKernel(**options) if name == "rbf" else MaternKernel(1.5, **options)


def scaled_kernel(name: str, inputs: int, ard: bool, batch: tuple[int, ...] = ()) -> ScaleKernel:
    """σ² k(x, x'), with one lengthscale or (`ard`) one per input."""
    shape = torch.Size(batch)
    return ScaleKernel(base_kernel(name, ard_num_dims=inputs if ard else None, batch_shape=shape), batch_shape=shape)


def gaussian_likelihood(floor: float = NOISE_FLOOR, batch: tuple[int, ...] = ()) -> GaussianLikelihood:
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(floor), batch_shape=torch.Size(batch))
    likelihood.noise_floor = floor
    return likelihood


def start_values(starts: int, lengthscales: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, float]]:
    """(lengthscales, noise variance) of each start: those of LENGTHSCALES with a noise of 1 %, then random ones."""
    yield from ((np.full(lengthscales, value), 1e-2) for value in LENGTHSCALES[:starts])
    for _ in range(starts - len(LENGTHSCALES)):
        yield np.exp(rng.uniform(np.log(0.1), np.log(3.0), lengthscales)), 10 ** rng.uniform(-4, -1)


def starting_points(
    kernel: ScaleKernel, likelihood: GaussianLikelihood, starts: int, rng: np.random.Generator
) -> Iterator[Callable[[], None]]:
    """Functions that put a kernel and a likelihood at each start, with variance 1."""
    base = kernel.base_kernel

    def put(lengthscale: np.ndarray, noise: float) -> None:
        base.lengthscale = torch.from_numpy(lengthscale).to(base.lengthscale).view_as(base.lengthscale)
        kernel.outputscale = 1.0
        likelihood.noise = max(noise, 2 * likelihood.noise_floor)

    return (partial(put, *start) for start in start_values(starts, base.lengthscale.numel(), rng))
