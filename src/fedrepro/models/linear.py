"""Linear regression, ŷ = wᵀ[x, 1], with the loss ½(ŷ − y)².

The full-batch gradient is Hw − b with H = XᵀX/n and b = Xᵀy/n, so a client's whole data comes down to (H, b, c);
`batch_gradient` and `batch_loss` take either these or a mini-batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fedrepro.core.federation import Batch
from fedrepro.core.params import Params
from fedrepro.core.quadratic import Quadratic


class LinearRegression(nn.Module):
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
        x, y = self.design(batch.x), batch.y
        weight = torch.ones_like(y) if batch.weight is None else batch.weight
        weighted = x * (weight / weight.sum())[:, None]
        return Quadratic(x.T @ weighted, weighted.T @ y, 0.5 * (weight * y.square()).sum() / weight.sum())

    def batch_gradient(self, w: Params, batch: Batch | Quadratic) -> tuple[Params, Tensor]:
        """(∇ of the mean loss, mean loss) at w."""
        if isinstance(batch, Quadratic):
            slope = batch.curvature @ w["w"]
            loss = w["w"] @ (0.5 * slope - batch.linear) + batch.constant
            return Params(w=slope - batch.linear), loss
        x = self.design(batch.x)
        residual = x @ w["w"] - batch.y
        share = 1 / len(residual) if batch.weight is None else batch.weight / batch.weight.sum()
        return Params(w=x.T @ (share * residual)), 0.5 * (share * residual.square()).sum()

    def batch_loss(self, w: Params, batch: Batch | Quadratic) -> Tensor:
        return self.batch_gradient(w, batch)[1]
