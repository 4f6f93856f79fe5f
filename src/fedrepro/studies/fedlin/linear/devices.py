"""A device's data for linear models with normal noise, sufficient statistics and scaling, and its posterior: quantiles,
credible intervals, included predictors.

`Statistics` of n samples: gram XᵀX [d, d], moment Xᵀy [d], square yᵀy, n, all as tensors, so that devices of any size
can be stacked. All posteriors of HM2 follow from them.

scaling:
- `none`: raw data.
- `thesis` (§3.6.1): numbers and the target to mean 0 and sd 1, dummies unchanged, no intercept. Means and sds are over
  all devices' training samples: each device sends sums once.
- `centred`: as `thesis`, then every column and the target minus their means on the device: one intercept per device.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric
from fedrepro.core.federation import Batch, Federation
from fedrepro.errors import UserError

SCALINGS = ("none", "thesis", "centred")
LEVELS = (0.5, 0.8, 0.9, 0.95)  # of the central credible intervals
INCLUSION = 0.9  # level, thesis §3.5.2: a predictor is included unless its interval covers 0
#: quantiles of the intervals: lower ends, then upper ends
QUANTILES = (*((1 - level) / 2 for level in LEVELS), *((1 + level) / 2 for level in LEVELS))


class Statistics(NamedTuple):
    gram: Tensor
    moment: Tensor
    square: Tensor
    n: Tensor


def statistics(x: Tensor, y: Tensor) -> Statistics:
    return Statistics(x.mT @ x, x.mT @ y, y @ y, y.new_tensor(float(len(y))))


class Scale(NamedTuple):
    """x ↦ (x − shift)/factor, y ↦ (y − y_shift)/y_factor."""

    shift: Tensor
    factor: Tensor
    y_shift: Tensor
    y_factor: Tensor

    def apply(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return (batch.x - self.shift) / self.factor, (batch.y - self.y_shift) / self.y_factor

    def raw(self, theta: Tensor, like: Tensor) -> Tensor:
        """The model of raw data that equals θ [d] on scaled data, in the shape of `like`: [d], [d, 1] or [d + 1] with
        the intercept last."""
        slope = self.y_factor * theta / self.factor
        if like.numel() == len(theta) + 1:
            slope = torch.cat([slope, (self.y_shift - slope @ self.shift)[None]])
        return slope.view(like.shape)


def pooled(federation: Federation) -> Batch:
    """All devices' training samples."""
    train = federation.train
    return Batch(train.samples.x[train.rows], train.samples.y[train.rows])


def check_scaling(method: str, scaling: str, federation: Federation) -> None:
    """A UserError if the scaling needs to know which predictors are numbers and the data set does not say."""
    if scaling != "none" and "numeric" not in federation.facts:
        raise UserError(f"{method}: scaling = '{scaling}': this data set does not say which predictors are numbers")


def noise_squares(federation: Federation, clients: Iterable[int]) -> list[Tensor]:
    """Squared errors of the true means on each client's test targets; `facts` have `test_mean` in the test's order."""
    test, truth = federation.test, torch.from_numpy(federation.facts["test_mean"])
    assert test is not None
    rows, first = [test.of(k) for k in clients], int(test.rows.min())  # a seed's rows are contiguous in memory
    return [(test.samples.y[r] - truth[r - first].view(test.samples.y[r].shape)).square() for r in rows]


def scale_of(federation: Federation, client: int | None, scaling: str) -> Scale:
    """The scale of a device's data; client None: of all devices' data."""
    together = pooled(federation)
    x, y = together.x, together.y
    if scaling == "none":
        return Scale(torch.zeros_like(x[0]), torch.ones_like(x[0]), y.new_zeros(()), y.new_ones(()))
    numeric = torch.from_numpy(federation.facts["numeric"]).to(x.device)
    scale = Scale(torch.where(numeric, x.mean(0), 0), torch.where(numeric, _sd(x), 1), y.mean(), _sd(y))
    if scaling == "centred":
        own = together if client is None else federation.train.full_batch(client)
        scale = scale._replace(shift=own.x.mean(0), y_shift=own.y.mean())
    return scale


def _sd(values: Tensor) -> Tensor:
    """Standard deviations of columns; 1 where a column is constant."""
    sd = values.std(0, correction=0)
    return torch.where(sd > 0, sd, torch.ones_like(sd))


def weighted_quantiles(draws: Tensor, weights: Tensor, at: Sequence[float] = QUANTILES) -> Tensor:
    """Quantiles [len(at), d] of draws [S, d] with weights [S], linear between the middles of the steps."""
    values, order = draws.sort(0)
    w = weights[order]
    middle = w.cumsum(0) - w / 2  # [S, d]
    p = torch.tensor(at, dtype=draws.dtype).to(draws.device)[:, None, None]
    right = (middle < p).sum(1).clamp(1, len(draws) - 1) if len(draws) > 1 else (middle < p).sum(1) * 0  # [q, d]
    left = (right - 1).clamp(min=0)
    x0, x1, m0, m1 = (part.gather(0, i) for part in (values, middle) for i in (left, right))
    share = ((p[:, 0] - m0) / (m1 - m0).clamp(min=1e-300)).clamp(0, 1)
    return x0 + share * (x1 - x0)


def interval(quantiles: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """(lower, upper) ends of the central interval, from `weighted_quantiles`."""
    at = LEVELS.index(level)
    return quantiles[at], quantiles[at + len(LEVELS)]


def covered(quantiles: Tensor, level: float, truth: Tensor) -> Tensor:
    """Which of the true values [d] lie in their intervals."""
    low, high = interval(quantiles, level)
    return (low <= truth) & (truth <= high)


def included(quantiles: Tensor) -> Tensor:
    """Which predictors' 90 % intervals exclude 0."""
    return ~covered(quantiles, INCLUSION, torch.zeros_like(quantiles[0]))


def inclusion_rates(chosen: Tensor, active: Tensor) -> tuple[float, float]:
    """(included share of the active predictors, of the others); NaN for an empty set."""
    return chosen[active].double().mean().item(), chosen[~active].double().mean().item()


def inclusion_metrics(chosen: Tensor, facts: dict[str, np.ndarray]) -> Iterator[Metric]:
    """Mean inclusion rates over devices, chosen [K, d], if the active predictors are known."""
    if "active" in facts:
        active = torch.from_numpy(facts["active"]).to(chosen.device)
        rates = np.array([inclusion_rates(own, active) for own in chosen]).mean(0)
        for name, rate in zip(("correct", "false"), rates.tolist(), strict=True):
            if not math.isnan(rate):
                yield Metric(f"{name}_inclusion", rate)


def report(
    mean: Tensor, quantiles: Tensor, positive: Tensor, facts: dict[str, np.ndarray], client: int
) -> Iterator[Metric]:
    """A device's posterior as metrics: by predictor (the `step`), and against the truth where it is known."""
    if not (quantiles[0] < quantiles[-1]).any():  # a device that never took part
        return
    chosen = included(quantiles)
    low, high = interval(quantiles, INCLUSION)
    parts = (("mean", mean), ("low", low), ("high", high), ("positive", positive), ("included", chosen.to(mean)))
    for name, part in parts:
        for j, value in enumerate(part.tolist()):
            yield Metric(f"theta_{name}", value, step=j)
    yield Metric("included", float(chosen.sum()))
    if "theta" in facts:
        truth = torch.from_numpy(facts["theta"][client]).to(quantiles)
        for level in LEVELS:
            yield Metric(f"coverage_{round(100 * level)}", covered(quantiles, level, truth).double().mean().item())
        if (truth != 0).any():
            z = (mean / (high - low) * 2 * 1.6449).abs()[truth != 0]  # of a normal law with this interval
            yield Metric("smallest_z", z.min().item())
    yield from inclusion_metrics(chosen[None], facts)


def phi_truth(kind: str, facts: dict[str, np.ndarray]) -> Iterator[Metric]:
    """The true φ where it exists: (μ, log τ) of a hierarchy, log σ² of a penalised regression (λ has no truth)."""
    if kind == "normal" and {"mean", "variance"} <= set(facts) and (facts["variance"] > 0).all():
        for j, value in enumerate([*facts["mean"], *np.log(facts["variance"])]):
            yield Metric("phi_true", float(value), "server", step=j)
    if kind != "normal" and facts.get("sigma", np.zeros(1)) > 0:
        yield Metric("phi_true", 2 * math.log(float(facts["sigma"])), "server", step=1)
