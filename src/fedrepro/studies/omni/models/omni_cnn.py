"""The network of Omni-Fedge (paper 001; layers as in the authors' public code): one convolution and a dense layer of
128, shared by all nodes, and a dense layer of 10 per node.

    conv 3×3 (28 filters, no activation, for MNIST; 32 and ReLU for Fashion-MNIST) → max-pool 2 → dense 128 →
    leaky ReLU 0.1 → dense 10 → leaky ReLU 0.1 → softmax

Glorot-uniform weights, biases zero; 607,394 parameters for MNIST, 693,962 for Fashion-MNIST, 1,290 of them in the head.
The leaky ReLU on the logits is the authors'.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, relu

from fedrepro.core.model import LOOP_BUT_ON_CUDA, Example, Model, channels_last, max_pool_2

SLOPE = 0.1


class _Glorot:
    def initialise(self: Any, generator: torch.Generator) -> None:
        nn.init.xavier_uniform_(self.weight, generator=generator)
        self.bias.zero_()


class GlorotConvolution(_Glorot, nn.Conv2d):
    pass


class GlorotDense(_Glorot, nn.Linear):
    pass


class OmniCNN(Model):
    """x [B, channels, height, width] → logits [B, outputs]."""

    objective = "cross_entropy"
    example = Example((1, 6, 6))
    strategies = LOOP_BUT_ON_CUDA
    #: θ^(i); the others are shared, θ^(sh)
    own = ("head.weight", "head.bias")

    def __init__(self, inputs: tuple[int, ...], outputs: int, filters: int = 28, activation: bool = False):
        super().__init__()
        channels, height, width = inputs
        self.activation = activation
        self.convolution = GlorotConvolution(channels, filters, 3)
        self.dense = GlorotDense(filters * ((height - 2) // 2) * ((width - 2) // 2), 128)
        self.head = GlorotDense(128, outputs)

    def forward(self, x: Tensor) -> Tensor:
        z = max_pool_2(self.convolution(channels_last(x)))
        z = relu(z) if self.activation else z  # ReLU after the pooling: the same maximum, on a quarter of the pixels
        z = leaky_relu(self.dense(z.flatten(1)), SLOPE)
        return leaky_relu(self.head(z), SLOPE)
