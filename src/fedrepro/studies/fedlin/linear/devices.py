"""What a device's data comes down to for linear models with normal noise, and the scaling of its columns.

`Statistics` of n samples: gram XᵀX [d, d], moment Xᵀy [d], square yᵀy, n, all as tensors, so that devices of any size
can be stacked. They are all that any of the posteriors of HM2 needs.

scaling:
- `none`: as the data are.
- `thesis` (§3.6.1): numbers to mean 0 and sd 1, dummies as they are, no intercept; the target to mean 0 and sd 1. Means
  and sds are those of all devices' training samples together: each device sends sums once.
- `centred`: as `thesis`, and then every column and the target less their means on the device: an intercept for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.federation import Batch, Federation

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
        """The model of unscaled data that predicts as θ [d] does of scaled data, in the shape of `like`: [d], [d, 1]
        or, with the intercept last, [d + 1]."""
        slope = self.y_factor * theta / self.factor
        if like.numel() == len(theta) + 1:
            slope = torch.cat([slope, (self.y_shift - slope @ self.shift)[None]])
        return slope.view(like.shape)


def pooled(federation: Federation) -> Batch:
    """All devices' training samples."""
    train = federation.train
    return Batch(train.samples.x[train.rows], train.samples.y[train.rows])


def scale_of(federation: Federation, client: int | None, scaling: str) -> Scale:
    """The scale of a device's data; client None: of all devices' together."""
    together = pooled(federation)
    one, zero = together.y.new_ones(()), together.y.new_zeros(())
    plain = Scale(torch.zeros_like(together.x[0]), torch.ones_like(together.x[0]), zero, one)
    if scaling == "none":
        return plain
    numeric = torch.from_numpy(np.asarray(federation.facts["numeric"])).to(together.x.device)
    shift = torch.where(numeric, together.x.mean(0), plain.shift)
    factor = torch.where(numeric, _sd(together.x), plain.factor)
    scale = Scale(shift, factor, together.y.mean(), _sd(together.y))
    if scaling == "centred":
        own = together if client is None else federation.train.full_batch(client)
        scale = scale._replace(shift=own.x.mean(0), y_shift=own.y.mean())
    return scale


def _sd(values: Tensor) -> Tensor:
    """Standard deviations of columns; 1 where a column is constant."""
    sd = values.std(0, correction=0)
    return torch.where(sd > 0, sd, torch.ones_like(sd))
