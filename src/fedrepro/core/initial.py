"""Models and their initial parameters, from a random stream of their own."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from fedrepro.core.model import Model


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
