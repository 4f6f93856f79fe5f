"""Multi-layer perceptron: dense layers with ReLU between them, cross-entropy."""

import itertools
import math
from collections.abc import Sequence

from torch import Tensor, nn

from fedrepro.core.model import Example, Model


class MLP(Model):
    """x [B, ...] → logits [B, outputs], through hidden layers of the widths `hidden`."""

    objective = "cross_entropy"
    example = Example(hyper={"hidden": [4]})

    def __init__(self, inputs: tuple[int, ...], outputs: int, hidden: Sequence[int] = (200,)):
        super().__init__()
        widths = [math.prod(inputs), *hidden, outputs]
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
        self.layers = nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1])
        self.own = (f"layers.{2 * len(hidden)}.weight", f"layers.{2 * len(hidden)}.bias")

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x.flatten(1))
