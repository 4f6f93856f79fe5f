"""Models: modules with an objective, a declared way of running their clients, and optional operations.

A `ClosedFormModel` computes loss and gradient of a batch without automatic differentiation. An `AssessingModel` also
assesses all clients of a split: it predicts from each client's own training data, works on summaries, or records errors
as its paper measures them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, max_pool2d

from fedrepro.core.federation import Batch
from fedrepro.core.params import Params
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.core.algorithm import Metric, Problem

StrategyName = Literal["loop", "vmap"]
#: loss [K] and score [K] of the clients, and more metrics
Assessment = tuple[np.ndarray, np.ndarray, "Sequence[Metric]"]

#: dense models: one fused computation beats many small ones
VMAP: Mapping[str, StrategyName] = {"cpu": "vmap", "cuda": "vmap", "mps": "vmap"}
#: convolutions: vmap makes them grouped, which is no faster on a CPU (and, unmeasured, on mps)
LOOP_BUT_ON_CUDA: Mapping[str, StrategyName] = {"cpu": "loop", "cuda": "vmap", "mps": "loop"}
LOOP: Mapping[str, StrategyName] = {"cpu": "loop", "cuda": "loop", "mps": "loop"}


class Example(NamedTuple):
    """A small model for the contract tests."""

    inputs: tuple[int, ...] = (3,)
    outputs: int = 3
    hyper: Mapping[str, Any] = MappingProxyType({})
    symbols: bool = False  # whether samples are symbols, one per output


class Model(nn.Module):
    """Base of all models: `Model(inputs, outputs, **hyper)` for samples of shape `inputs` and `outputs` classes or
    targets."""

    #: a key of `fedrepro.core.task.OBJECTIVES`
    objective: ClassVar[str]
    #: device type → how a round's clients run; `python -m fedrepro.bench.strategies` times both
    strategies: ClassVar[Mapping[str, StrategyName]] = VMAP
    vectorised: ClassVar[bool] = True  # False: `vmap` cannot run it
    outputs_apart: int = 1  # outputs that are separate problems on common inputs
    own: tuple[str, ...] = ()  # parameters that each client keeps to itself, in methods with such
    mean_loss: ClassVar[bool] = True  # False: the loss of a batch is not a mean over its samples
    example: ClassVar[Example] = Example()

    def summarise(self, batch: Batch) -> Any:
        """Sufficient statistics of a full batch if the model has them, else the batch."""
        return batch

    def strategy(self, device: str, asked: str | None = None) -> StrategyName:
        """`asked` (`loop` or `vmap`), else the declared strategy for this type of device."""
        if (asked or self.strategies[device]) == "loop":
            return "loop"
        if not self.vectorised:
            raise UserError(f"strategy: vmap cannot run the model {type(self).__name__}: use loop")
        return "vmap"


class ClosedFormModel(Model):
    """`batch` is a mini-batch, or a full batch as `summarise` returns it."""

    def batch_loss(self, w: Params, batch: Any) -> Tensor:
        """Mean loss at w, a scalar."""
        raise NotImplementedError

    def batch_gradient(self, w: Params, batch: Any) -> Params:
        """∇ of the mean loss at w."""
        raise NotImplementedError


class AssessingModel(ClosedFormModel):
    def assess(self, problem: Problem, models: dict[int, Params], split: str) -> Assessment:
        """The assessment of `models`, those of the clients that hold anything of the split."""
        raise NotImplementedError


class Quadratic(NamedTuple):
    """½wᵀHw − bᵀw + c: curvature H [..., d, d], linear b [..., d], constant c [...]; leading axis: clients."""

    curvature: Tensor
    linear: Tensor
    constant: Tensor

    def spectrum(self) -> tuple[float, float]:
        """(μ, L): the extreme eigenvalues over all clients' curvatures."""
        values = torch.linalg.eigvalsh(self.curvature)
        return values.min().item(), values.max().item()

    def of(self, clients: Tensor) -> Quadratic:
        return Quadratic(*(part[clients] for part in self))

    def minimiser(self) -> Tensor:
        """argmin of the plain mean over the clients: [d]."""
        found: Tensor = torch.linalg.solve(self.curvature.mean(0), self.linear.mean(0))
        return found

    def gradients(self, w: Tensor) -> Tensor:
        """Each client's gradient at its own point: w [K, d] → [K, d]."""
        return (self.curvature @ w[..., None])[..., 0] - self.linear


@runtime_checkable
class Initialised(Protocol):
    """A module that initialises its own parameters."""

    def initialise(self, generator: torch.Generator) -> None: ...


def build(make: type[Model], inputs: tuple[int, ...], outputs: int, generator: torch.Generator, **hyper: Any) -> Model:
    """The model, initialised from `generator` alone; torch's global random state does not change."""
    with torch.random.fork_rng(devices=[]):
        model: Model = make(inputs, outputs, **hyper)
    initialise(model, generator)
    return model


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """torch's default for dense and convolutional layers, U(±1/√fan_in) for weight and bias; see `Initialised`."""
    for module in model.modules():
        if isinstance(module, Initialised):
            module.initialise(generator)
        elif isinstance(module, nn.Linear | nn.modules.conv._ConvNd):
            bound = 1 / math.sqrt(module.weight[0].numel())
            for parameter in module.parameters(recurse=False):
                parameter.uniform_(-bound, bound, generator=generator)


def max_pool_2(z: Tensor) -> Tensor:
    """The largest of every 2×2 pixels, [..., height, width] → [..., height // 2, width // 2]. torch's own pooling also
    notes the position of each maximum, needed for gradients only: on a CPU slower than the convolution before it."""
    if torch.is_grad_enabled():
        return max_pool2d(z, 2)
    height, width = (size // 2 * 2 for size in z.shape[-2:])
    rows = torch.maximum(z[..., 0:height:2, :], z[..., 1:height:2, :])
    return torch.maximum(rows[..., 0:width:2], rows[..., 1:width:2])


def channels_last(x: Tensor) -> Tensor:
    """The images [B, channels, height, width] with channels innermost in memory, whose maps torch pools faster on a
    CPU. For one channel it is a view: its strides tell torch's convolutions to return maps of that order."""
    pixels = x.permute(0, 2, 3, 1)
    return pixels.flatten(1).view(pixels.shape).permute(0, 3, 1, 2)


class _Plain(nn.Module):
    """A norm with initial weight 1 and bias 0."""

    weight: nn.Parameter
    bias: nn.Parameter

    def initialise(self, generator: torch.Generator) -> None:
        self.weight.fill_(1.0)
        self.bias.zero_()


class GroupNorm(_Plain, nn.GroupNorm):
    pass


class BatchNorm(_Plain):
    """Batch norm over [B, channels, height, width], as torch's, but usable inside `torch.func.vmap` (the running
    statistics are never changed in place) and without a count of batches, which could not be averaged."""

    momentum, epsilon = 0.1, 1e-5
    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return batch_norm(x, self.mean, self.variance, self.weight, self.bias, eps=self.epsilon)
        variance, mean = torch.var_mean(x.detach(), (0, 2, 3))
        self.mean = torch.lerp(self.mean, mean, self.momentum)
        self.variance = torch.lerp(self.variance, variance, self.momentum)
        return batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.epsilon)
