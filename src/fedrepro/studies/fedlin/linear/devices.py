"""Sufficient statistics of a device's data for linear models with normal noise, the scaling of its columns, and the
errors of simple predictions.

`Statistics` of n samples: gram XᵀX [d, d], moment Xᵀy [d], square yᵀy, n, all as tensors, so that devices of any size
can be stacked. All posteriors of HM2 follow from them.

scaling:
- `none`: raw data.
- `thesis` (§3.6.1): numbers and the target to mean 0 and sd 1, dummies unchanged, no intercept. Means and sds are over
  all devices' training samples: each device sends sums once.
- `centred`: as `thesis`, then every column and the target minus their means on the device: one intercept per device.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from fedrepro.core.federation import Batch, Federation
from fedrepro.errors import UserError

SCALINGS = ("none", "thesis", "centred")


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
        """The model of raw data that equals θ [d] on scaled data, in the shape of `like`: [d], [d, 1] or, with the
        intercept last, [d + 1]."""
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
