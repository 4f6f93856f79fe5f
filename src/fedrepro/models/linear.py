"""Linear regression, ŷ = wᵀ[x, 1], with the loss ½(ŷ − y)².

The full-batch gradient is Hw − b with H = XᵀX/n and b = Xᵀy/n, so (H, b, c) summarises a client's data;
`batch_gradient` and `batch_loss` take this or a mini-batch.
"""

import torch
from torch import Tensor, nn

from fedrepro.core.federation import Batch
from fedrepro.core.model import ClosedFormModel, Quadratic
from fedrepro.core.params import Params


class LinearRegression(ClosedFormModel):
    """x [B, d] → ŷ [B]; one parameter w [d] or, with `bias`, [d + 1] (the intercept last); starts at 0."""

    objective = "half_squared_error"

    def __init__(self, inputs: tuple[int, ...], outputs: int = 1, bias: bool = True):
        super().__init__()
        (features,) = inputs
        self.bias = bias
        self.w = nn.Parameter(torch.zeros(features + bias))

    def initialise(self, generator: torch.Generator) -> None:
        self.w.zero_()

    def design(self, x: Tensor) -> Tensor:
        """[x, 1]: [B, d] → [B, d + 1]."""
        return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1) if self.bias else x

    def forward(self, x: Tensor) -> Tensor:
        return self.design(x) @ self.w

    def summarise(self, batch: Batch) -> Quadratic:
        """(H, b, c) with mean loss ½wᵀHw − bᵀw + c."""
        x, shares = self.design(batch.x), batch.shares()
        y = batch.y.to(x.dtype)  # classes may serve as numbers
        weighted = x.T * shares
        return Quadratic(weighted @ x, weighted @ y, 0.5 * (shares * y.square()).sum())

    def batch_gradient(self, w: Params, batch: Batch | Quadratic) -> Params:
        if isinstance(batch, Quadratic):
            return Params(w=batch.curvature @ w["w"] - batch.linear)
        x = self.design(batch.x)
        return Params(w=x.T @ (batch.shares() * (x @ w["w"] - batch.y)))

    def batch_loss(self, w: Params, batch: Batch | Quadratic) -> Tensor:
        if isinstance(batch, Quadratic):
            return w["w"] @ (0.5 * batch.curvature @ w["w"] - batch.linear) + batch.constant
        return 0.5 * (batch.shares() * (self.design(batch.x) @ w["w"] - batch.y).square()).sum()
