"""Next character by a two-layer LSTM (thesis §2.5.2; LEAF, Caldas et al. 2018): embedding 8, hidden 256, a dense layer.

The thesis gives 80 characters, two LSTM layers and a dense layer; the widths are LEAF's. Initial weights are torch's:
normal for the embedding, U(±1/√hidden) for the LSTM. torch's LSTM has no fast rule for `vmap`: clients run in a loop.
"""

import math

import torch
from torch import Tensor, nn

from fedrepro.core.model import LOOP, Example, Model

LAYERS = 2


class Embedding(nn.Embedding):
    def initialise(self, generator: torch.Generator) -> None:
        self.weight.normal_(generator=generator)


class LSTM(nn.LSTM):
    """torch's, reading its weights when called, so that `functional_call` can replace them."""

    def initialise(self, generator: torch.Generator) -> None:
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            parameter.uniform_(-bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, features] → the output at every step [B, T, hidden]."""
        weights = [getattr(self, name) for name in self._flat_weights_names]
        start = x.new_zeros(self.num_layers, len(x), self.hidden_size)
        return torch._VF.lstm(x, (start, start), weights, True, self.num_layers, 0.0, False, False, True)[0]


class CharLSTM(Model):
    """x [B, window] symbols (integers) → logits of the next one [B, outputs]; as many symbols as outputs."""

    objective = "cross_entropy"
    example = Example((4,), symbols=True)
    strategies = LOOP
    vectorised = False

    def __init__(self, inputs: tuple[int, ...], outputs: int, embedding: int = 8, hidden: int = 256):
        super().__init__()
        self.embedding = Embedding(outputs, embedding)
        self.lstm = LSTM(embedding, hidden, LAYERS, batch_first=True)
        self.dense = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(self.lstm(self.embedding(x.int()))[:, -1])
