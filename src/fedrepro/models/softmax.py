"""Softmax (multinomial logistic) regression: one dense layer on the flattened input, cross-entropy."""

from __future__ import annotations

import math

from torch import Tensor, nn


class SoftmaxRegression(nn.Module):
    """x [B, ...] → logits [B, outputs]."""

    objective = "cross_entropy"

    def __init__(self, inputs: tuple[int, ...], outputs: int):
        super().__init__()
        self.dense = nn.Linear(math.prod(inputs), outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(x.flatten(1))
