"""What a model is: a module with an objective, a declared way of running its clients, and optional operations.

Optional operations are subclasses, which the engine asks for with `isinstance`:

- `ClosedFormModel` computes loss and gradient of a batch itself, without automatic differentiation;
- `AssessingModel` also assesses all clients of a split itself: it predicts from each client's own training data, works
  on summaries, or records errors as its paper measures them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from torch import Tensor, nn

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
