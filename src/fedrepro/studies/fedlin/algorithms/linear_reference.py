"""What HM2 is held against (thesis Tables 3.2 and 3.3), without rounds.

- `lasso`, `ridge`: centralised, all devices' samples in one place, by scikit-learn (linear/sklearn_fits.py). The thesis
  does not say how it chose its penalties. Ridge sets no coefficient to 0, so the "21 included predictors" of Table 3.3
  can only come from intervals.
- `separate`: least squares of every device alone; included by 90 % intervals of normal laws.

Data are scaled as for HM2 (linear/devices.py). Also recorded: rmse_trivial and a_rmse_trivial, of the mean training
target of all devices, and of each device's own for `separate`; target_sd, the unit of scaled targets; a_rmse_floor, of
the true means against the noisy test targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Metric
from fedrepro.core.federation import Federation
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear import sklearn_fits
from fedrepro.studies.fedlin.linear.devices import SCALINGS, pooled, scale_of
from fedrepro.studies.fedlin.linear.estimators import least_squares
from fedrepro.studies.fedlin.linear.posterior import inclusion_rates

FITS = ("lasso", "ridge", "separate")


@dataclass(frozen=True)
class LinearReference(Algorithm):
    fit: str = "lasso"
    scaling: str = "none"

    iterative: ClassVar[bool] = False

    def __post_init__(self):
        self.require(self.fit in FITS, "fit", f"one of {', '.join(FITS)}")
        self.require(self.scaling in SCALINGS, "scaling", f"one of {', '.join(SCALINGS)}")

    def resolve(self, problem):
        if self.scaling != "none" and "numeric" not in problem.federation.facts:
            words = "this data set does not say which columns are numbers"
            raise UserError(f"LinearReference: scaling = '{self.scaling}': {words}")
        return self

    def init(self, problem, w):
        federation = problem.federation
        (name, like), *_ = w.items()
        models, included = [], []
        for client in range(len(federation)) if self.fit == "separate" else [None]:
            batch = pooled(federation) if client is None else federation.train.full_batch(client)
            scale = scale_of(federation, client, self.scaling)
            x, y = scale.apply(batch)
            theta, chosen = self._fit(x, y)
            models.append(Params({name: scale.raw(theta, like)}))
            included.append(chosen)
        return {"models": models, "included": torch.stack(included), "target_sd": float(scale.y_factor)}

    def model(self, state, local, client):
        return state["models"][client if len(state["models"]) > 1 else 0]

    def metrics(self, problem, state, round):
        federation, chosen = problem.federation, state["included"]
        yield Metric("target_sd", state["target_sd"])
        if self.fit != "separate":
            for j, value in enumerate(chosen[0].tolist()):
                yield Metric("theta_included", float(value), step=j)
        yield Metric("included", chosen.double().sum(1).mean().item())
        if "active" in federation.facts:
            active = torch.from_numpy(federation.facts["active"])
            rates = np.array([inclusion_rates(own, active) for own in chosen]).mean(0)
            for name, rate in zip(("correct", "false"), rates, strict=True):
                if not np.isnan(rate):
                    yield Metric(f"{name}_inclusion", float(rate))
        yield from _bounds(federation, self.fit == "separate")

    def _fit(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self.fit == "separate":
            return _least_squares(x, y)
        found = getattr(sklearn_fits, self.fit)(x.cpu().numpy(), y.cpu().numpy())
        return torch.from_numpy(found[0]).to(x), torch.from_numpy(found[1])


def _least_squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """No predictor is included where there are no more samples than predictors."""
    theta, spare = least_squares(x, y[:, None])[:, 0], len(y) - x.shape[1]
    if spare <= 0:
        return theta, torch.zeros(len(theta), dtype=torch.bool)
    variance = (y - x @ theta).square().sum() / spare
    sd = (variance * torch.linalg.pinv(x.mT @ x).diagonal()).sqrt()
    return theta, (theta.abs() > sklearn_fits.HALF_WIDTH * sd).cpu()


def _bounds(federation: Federation, own: bool) -> Iterator[Metric]:
    """Errors of the trivial predictor and, where the test targets' means are known, of these."""
    everyone, train = pooled(federation).y.mean(), federation.train
    means = [train.samples.y[train.of(k)].mean() if own else everyone for k in range(len(federation))]
    for split, held in federation.splits():
        if split == "train" or len(held) != len(federation):
            continue
        squares = [(held.samples.y[held.of(k)] - means[k]).square() for k in np.flatnonzero(held.sizes)]
        yield Metric("rmse_trivial", _root(torch.cat(squares)), split)
        yield Metric("a_rmse_trivial", float(np.mean([_root(mine) for mine in squares])), split)
    if federation.test is not None and "test_mean" in federation.facts:
        test, truth = federation.test, torch.from_numpy(federation.facts["test_mean"])
        first = int(test.rows.min())  # a seed's rows follow one another in memory
        off = [(test.samples.y[test.of(k)] - truth[test.of(k) - first]).square() for k in np.flatnonzero(test.sizes)]
        yield Metric("a_rmse_floor", float(np.mean([_root(mine) for mine in off])), "test")


def _root(squares: Tensor) -> float:
    return squares.mean().sqrt().item()
