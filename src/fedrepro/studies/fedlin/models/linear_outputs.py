"""Linear regressions on common inputs, ŷ = Wᵀx with one column of W per output, each with the loss ½(ŷ − y)².

Outputs are independent: a method that treats columns alike solves all problems at once, with the same devices, seed and
steps (thesis §3.6.2: the same engines for each sensor and scaling). There is no intercept: a design that needs one has
a column of ones.

With `arms`, names of A variants of a method, the outputs are repeated for each arm, arm after arm, from the same start:
one run then trains all variants, each on its own columns of W, with the same batches.

A client's data is summarised, for training and for errors, by H = XXᵀ/n [d, d], b = XY/n [d, S] and c = ½ mean of Y²
[S]: the mean square error of W is diag(WᵀHW) − 2 diag(Wᵀb) + 2c. In float64 this is exact to about 1e-15 of the mean of
Y².
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.core.federation import Batch
from fedrepro.core.model import AssessingModel, Assessment, Example, Quadratic
from fedrepro.core.params import Params

Facts = Mapping[str, np.ndarray]


class LinearOutputs(AssessingModel):
    """x [B, d] → ŷ [B, S], or [B] for one output; W [d, S] starts at 0, or with sd `start` at normal numbers. With A
    arms, there are S · A outputs."""

    objective = "half_squared_error"
    example = Example(outputs=1)

    def __init__(self, inputs: tuple[int, ...], outputs: int = 1, start: float = 0.0, arms: Sequence[str] = ()):
        super().__init__()
        (features,) = inputs
        self.start = start
        self.arms = tuple(arms)
        self.targets = outputs
        self.outputs_apart = outputs * max(1, len(self.arms))
        self.w = nn.Parameter(torch.zeros(features, self.outputs_apart))

    def initialise(self, generator: torch.Generator) -> None:
        self.w.zero_()
        if self.start:
            first = self.w[:, : self.targets].normal_(0.0, self.start, generator=generator)
            self.w.copy_(first.clone().repeat(1, max(1, len(self.arms))))

    def repeated(self, values: Tensor | np.ndarray) -> Tensor:
        """Numbers by target, [..., S], as numbers by output, [..., S · A]."""
        values = torch.as_tensor(values)
        return values if len(self.arms) < 2 else torch.cat([values] * len(self.arms), dim=-1)

    def names(self, facts: Facts) -> list[str]:
        """Names of the outputs: of the targets, after the arm if there are arms ("box 10, sd")."""
        targets = facts["outputs"].tolist() if "outputs" in facts else [""] * self.targets
        return [", ".join(filter(None, (arm, target))) for arm in self.arms or ("",) for target in targets]

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.w
        return y[..., 0] if self.outputs_apart == 1 else y

    def summarise(self, batch: Batch) -> Quadratic:
        """(H, b, c); all zero for a client without samples, whose gradient is therefore 0."""
        x, y, shares = batch.x, self._columns(batch.y), batch.shares() if len(batch.y) else 0.0
        weighted = x.T * shares
        return Quadratic(weighted @ x, weighted @ y, 0.5 * (y.square().T * shares).sum(-1))

    def batch_gradient(self, w: Params, batch: Batch | Quadratic) -> Params:
        """∇ of the outputs' mean losses at W: [d, S]. A batch's weights may be [B, S]: each output has its own."""
        if isinstance(batch, Quadratic):
            return Params(w=batch.curvature @ w["w"] - batch.linear)
        x, shares = batch.x, batch.shares()
        if isinstance(shares, Tensor) and shares.dim() == 1:
            shares = shares[:, None]
        y = batch.y[..., None] if self.targets == 1 else batch.y
        off = (x @ w["w"]).unflatten(-1, (-1, self.targets)) - y[:, None, :]  # [B, A, S]
        return Params(w=x.T @ (off.flatten(1) * shares))

    def batch_loss(self, w: Params, batch: Batch | Quadratic) -> Tensor:
        """Sum over the outputs of their mean losses at W."""
        whole = batch if isinstance(batch, Quadratic) else self.summarise(batch)
        return 0.5 * square_errors(w["w"], whole).sum(-1)

    def assess(self, problem: Problem, models: dict[int, Params], split: str) -> Assessment:
        """Loss and mean square error, means over the outputs; a_rmse by output, the mean over devices of the root mean
        square error (§3.5.1), on the test split over devices `scored` in the facts only; and, if the facts have the
        true θ [K, d] or [K, d, S], a_rmse_noise_free, the same against the test targets' means."""
        clients, facts = list(models), problem.federation.facts
        w = torch.stack([mine["w"] for mine in models.values()])  # [K, d, S]
        whole = problem.summaries(split).of(torch.tensor(clients))
        mse = square_errors(w, whole)  # [K, S]
        scored = torch.ones(len(clients), dtype=torch.bool)
        if split == "test" and "scored" in facts:
            scored = torch.from_numpy(facts["scored"][clients])
        names = self.names(facts)
        found = [("a_rmse", mse)]
        if split == "test" and "theta" in facts:
            theta = torch.from_numpy(facts["theta"][clients]).to(mse).view(len(mse), -1, self.targets)
            off = w - self.repeated(theta)
            found.append(("a_rmse_noise_free", (off * (whole.curvature @ off)).sum(-2)))
        more = [
            Metric(metric, value, split, group=name)
            for metric, squares in found
            for name, value in zip(names, squares[scored].clamp(min=0).sqrt().mean(0).tolist(), strict=True)
        ]
        losses, scores = np.zeros((2, len(problem.federation)))
        losses[clients], scores[clients] = 0.5 * mse.mean(-1).cpu().numpy(), mse.mean(-1).cpu().numpy()
        return losses, scores, more

    def _columns(self, y: Tensor) -> Tensor:
        return self.repeated(y[..., None] if self.targets == 1 else y)


def square_errors(w: Tensor, whole: Quadratic) -> Tensor:
    """Mean square errors of W [..., d, S] on summarised data: [..., S]."""
    return (w * (whole.curvature @ w - 2 * whole.linear)).sum(-2) + 2 * whole.constant
