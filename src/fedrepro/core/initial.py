"""Models and their initial parameters, from a random stream of their own."""

from __future__ import annotations

import math

import torch
from torch import nn


def build(
    make: type[nn.Module], inputs: tuple[int, ...], outputs: int, generator: torch.Generator, **hyper
) -> nn.Module:
    """The model, initialised from `generator` alone: torch's global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        model = make(inputs, outputs, **hyper)
    initialise(model, generator)
    return model


@torch.no_grad()
def initialise(model: nn.Module, generator: torch.Generator) -> None:
    """torch's default for dense and convolutional layers, U(±1/√fan_in) for weight and bias, from `generator`.

    A module with parameters of another kind has an `initialise(generator)` of its own.
    """
    for module in model.modules():
        if hasattr(module, "initialise"):
            module.initialise(generator)
        elif isinstance(module, nn.Linear | nn.modules.conv._ConvNd):
            bound = 1 / math.sqrt(module.weight[0].numel())
            for parameter in module.parameters(recurse=False):
                parameter.uniform_(-bound, bound, generator=generator)
