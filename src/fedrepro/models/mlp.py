"""Multi-layer perceptron: dense layers with ReLU between them, cross-entropy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from torch import Tensor, nn


class MLP(nn.Module):
    """x [B, ...] → logits [B, outputs], through hidden layers of the widths `hidden`."""

    objective = "cross_entropy"
    #: the weight that meets the input, and only there (see `fedrepro.core.factors`)
    first_weight = "layers.0.weight"

    def __init__(self, inputs: tuple[int, ...], outputs: int, hidden: Sequence[int] = (200,)):
        super().__init__()
        widths = [math.prod(inputs), *hidden, outputs]
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
        self.layers = nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1])
        #: the last layer, for methods in which each client has one of its own
        self.own = (f"layers.{2 * len(hidden)}.weight", f"layers.{2 * len(hidden)}.bias")

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.flatten(1))

    def after_first(self, z: Tensor) -> Tensor:
        """The logits, from the first layer's product with the input, without its bias: z [B, hidden[0]]."""
        return self.layers[1:](z + self.layers[0].bias)
