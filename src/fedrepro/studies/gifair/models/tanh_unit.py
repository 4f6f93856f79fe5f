"""One unit, ŷ = tanh(wᵀx), with the loss ½(ŷ − y)²: smooth, not convex, bounded gradients (thesis §2.3.2.2; added)."""

import torch
from torch import Tensor, nn

from fedrepro.core.federation import Batch
from fedrepro.core.model import ClosedFormModel, Example
from fedrepro.core.params import Params


class TanhUnit(ClosedFormModel):
    """x [B, d] → ŷ [B]; one parameter w [d]."""

    objective = "half_squared_error"
    example = Example()

    def __init__(self, inputs: tuple[int, ...], outputs: int = 1):
        super().__init__()
        (features,) = inputs
        self.w = nn.Parameter(torch.zeros(features))

    def initialise(self, generator: torch.Generator) -> None:
        self.w.normal_(generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.w)

    def batch_loss(self, w: Params, batch: Batch) -> Tensor:
        return 0.5 * (batch.shares() * (torch.tanh(batch.x @ w["w"]) - batch.y).square()).sum()

    def batch_gradient(self, w: Params, batch: Batch) -> Params:
        unit = torch.tanh(batch.x @ w["w"])
        return Params(w=batch.x.T @ (batch.shares() * (unit - batch.y) * (1 - unit.square())))
