"""What a model is: a module with an objective, a declared way of running its clients, and optional operations.

Optional operations are subclasses, which the engine asks for with `isinstance`:

- `ClosedFormModel` computes loss and gradient of a batch itself, without automatic differentiation;
- `AssessingModel` also assesses all clients of a split itself: it predicts from each client's own training data, works
  on summaries, or records errors as its paper measures them.
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
#: convolutions: vmap turns them into grouped ones, which a CPU (and, unmeasured, mps) does not compute any faster
LOOP_BUT_ON_CUDA: Mapping[str, StrategyName] = {"cpu": "loop", "cuda": "vmap", "mps": "loop"}
LOOP: Mapping[str, StrategyName] = {"cpu": "loop", "cuda": "loop", "mps": "loop"}


class Example(NamedTuple):
    """A small model for the contract tests: the shape of its samples, its outputs, its hyper-parameters."""

    inputs: tuple[int, ...] = (3,)
    outputs: int = 3
    hyper: Mapping[str, Any] = MappingProxyType({})
    symbols: bool = False  # whether samples are symbols, as many different ones as there are outputs


class Model(nn.Module):
    """Base of all models, made as `Model(inputs, outputs, **hyper)`: samples of shape `inputs`, and `outputs` classes
    or targets."""

    #: a key of `fedrepro.core.task.OBJECTIVES`
    objective: ClassVar[str]
    #: device type → how a round's clients are run; `python -m fedrepro.bench.strategies` times both
    strategies: ClassVar[Mapping[str, StrategyName]] = VMAP
    #: False: `vmap` cannot run it
    vectorised: ClassVar[bool] = True
    #: outputs that are separate problems on common inputs
    outputs_apart: int = 1
    #: parameters of which each client has its own, in methods that know such
    own: tuple[str, ...] = ()
    #: False: the loss of a batch is not a mean over its samples
    mean_loss: ClassVar[bool] = True
    example: ClassVar[Example] = Example()

    def summarise(self, batch: Batch) -> Any:
        """What a full batch comes down to: sufficient statistics where the model has them, else the batch."""
        return batch

    def strategy(self, device: str, asked: str | None = None) -> StrategyName:
        """The way that is asked for (`loop` or `vmap`), else the declared one for this type of device."""
        name = asked or self.strategies[device]
        if name == "loop":
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


# --- quadratic objectives ----------------------------------------------------------------------------------------------


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


# --- initial values ----------------------------------------------------------------------------------------------------


@runtime_checkable
class Initialised(Protocol):
    """A module whose parameters start otherwise than torch's dense and convolutional layers."""

    def initialise(self, generator: torch.Generator) -> None: ...


def build(make: type[Model], inputs: tuple[int, ...], outputs: int, generator: torch.Generator, **hyper: Any) -> Model:
    """The model, initialised from `generator` alone: torch's global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        model: Model = make(inputs, outputs, **hyper)
    initialise(model, generator)
    return model


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """torch's default for dense and convolutional layers, U(±1/√fan_in) for weight and bias, from `generator`; other
    modules initialise themselves."""
    for module in model.modules():
        if isinstance(module, Initialised):
            module.initialise(generator)
        elif isinstance(module, nn.Linear | nn.modules.conv._ConvNd):
            bound = 1 / math.sqrt(module.weight[0].numel())
            for parameter in module.parameters(recurse=False):
                parameter.uniform_(-bound, bound, generator=generator)


# --- layers that several models share ----------------------------------------------------------------------------------


def max_pool_2(z: Tensor) -> Tensor:
    """The largest of every 2×2 pixels, [..., height, width] → [..., height // 2, width // 2].

    torch's own pooling notes where each maximum was. A gradient needs that; without one it only takes time, on a CPU
    several times that of the convolution before it.
    """
    if torch.is_grad_enabled():
        return max_pool2d(z, 2)
    height, width = (size // 2 * 2 for size in z.shape[-2:])
    rows = torch.maximum(z[..., 0:height:2, :], z[..., 1:height:2, :])
    return torch.maximum(rows[..., 0:width:2], rows[..., 1:width:2])


class _Plain(nn.Module):
    """A norm that starts as the identity on normalised values."""

    weight: nn.Parameter
    bias: nn.Parameter

    def initialise(self, generator: torch.Generator) -> None:
        self.weight.fill_(1.0)
        self.bias.zero_()


class GroupNorm(_Plain, nn.GroupNorm):
    pass


class BatchNorm(_Plain):
    """Batch norm over [B, channels, height, width], as torch's: by the batch's statistics in training, by the running
    ones otherwise. These are assigned, never changed in place, so that it also works inside `torch.func.vmap`, and
    there is no count of batches among its buffers, which could not be averaged."""

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
