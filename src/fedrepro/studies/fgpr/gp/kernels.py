"""gpytorch's kernels, as modules and as functions of their parameters on the natural scale."""

import functools
from typing import Any

import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor, nn

from fedrepro.errors import UserError, nearest

KERNELS = ("rbf", "matern32")


def base_kernel(name: str, **options: Any) -> Kernel:
    """gpytorch's kernel k(x, x') of variance 1."""
    if name not in KERNELS:
        raise UserError(f"gp: kernel = '{name}' is unknown{nearest(name, KERNELS)}")
    return RBFKernel(**options) if name == "rbf" else MaternKernel(1.5, **options)


class NaturalKernel(nn.Module):
    """The same as a function of x [*, n, d], x' [*, m, d] and its parameter on the natural scale."""

    def __init__(self, name: str, ard: bool):
        super().__init__()
        natural = GreaterThan(0.0, transform=None)
        # for ARD, gpytorch only tests for more than one dimension
        self.kernel = base_kernel(name, ard_num_dims=2 if ard else None, lengthscale_constraint=natural)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return self.kernel.forward(x1, x2)


natural_kernel = functools.cache(NaturalKernel)


def scaled_kernel(name: str, inputs: int, ard: bool, batch: tuple[int, ...] = ()) -> ScaleKernel:
    """σ² k(x, x'), with one lengthscale or (`ard`) one per input."""
    shape = torch.Size(batch)
    return ScaleKernel(base_kernel(name, ard_num_dims=inputs if ard else None, batch_shape=shape), batch_shape=shape)
