"""References for HM2 (thesis Tables 3.2 and 3.3), without rounds.

- `lasso`, `ridge`: centralised, on all devices' samples, by scikit-learn. The thesis does not say how it chose its
  penalties. Ridge sets no coefficient to 0, so the "21 included predictors" of Table 3.3 can only come from intervals.
- `separate`: least squares on every device alone; included by 90 % intervals of normal laws.
There is no intercept, as in the thesis; targets that are all 0 give 0.

Data are scaled as for HM2 (linear/devices.py). Also recorded: rmse_trivial and a_rmse_trivial, the errors of all
devices' mean training target (for `separate`, of each device's own); target_sd, the unit of scaled targets;
a_rmse_floor, the error of the true means on the noisy test targets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Metric, Problem, State, one_of
from fedrepro.core.federation import Federation
from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear import devices
from fedrepro.studies.fedlin.linear.estimators import least_squares

FOLDS = 5
HALF_WIDTH = 1.6448536269514722  # of a normal law's 90 % interval, in sds


def lasso(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Lasso (Tibshirani 1996) with the penalty of least error in 5 folds, from scikit-learn's path of 100; included are
    the coefficients that are not 0."""
    if len(y) < FOLDS or not y.any():
        return x.new_zeros(x.shape[1]), torch.zeros(x.shape[1], dtype=torch.bool)
    from sklearn.linear_model import LassoCV  # slow to import

    # rows go to the folds in turn, so that every fold has samples of every device
    number = np.arange(len(y)) % FOLDS
    folds = [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(FOLDS)]
    fitted = LassoCV(cv=folds, fit_intercept=False, max_iter=20000).fit(x.cpu().numpy(), y.cpu().numpy())
    return torch.from_numpy(fitted.coef_).to(x), torch.from_numpy(fitted.coef_ != 0)


def ridge(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """`BayesianRidge`: y ~ N(Xθ, σ²I), θ ~ N(0, λ⁻¹I), with the σ² and λ of largest evidence; included are the
    coefficients whose 90 % interval, given these, excludes 0."""
    if not y.any():
        return x.new_zeros(x.shape[1]), torch.zeros(x.shape[1], dtype=torch.bool)
    from sklearn.linear_model import BayesianRidge

    fitted = BayesianRidge(fit_intercept=False, max_iter=1000).fit(x.cpu().numpy(), y.cpu().numpy())
    chosen = np.abs(fitted.coef_) > HALF_WIDTH * np.sqrt(np.diag(fitted.sigma_))
    return torch.from_numpy(fitted.coef_).to(x), torch.from_numpy(chosen)


def separate(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Least squares. Without more samples than predictors, no predictor is included."""
    theta, spare = least_squares(x, y[:, None])[:, 0], len(y) - x.shape[1]
    if spare <= 0:
        return theta, torch.zeros(len(theta), dtype=torch.bool)
    variance = (y - x @ theta).square().sum() / spare
    sd = (variance * torch.linalg.pinv(x.mT @ x).diagonal()).sqrt()
    return theta, (theta.abs() > HALF_WIDTH * sd).cpu()


#: x [n, d], y [n] → θ [d], which predictors are included [d]
FITS = {"lasso": lasso, "ridge": ridge, "separate": separate}


@dataclass(frozen=True)
class LinearReference(Algorithm):
    fit: str = one_of("lasso", *FITS)
    scaling: str = one_of("none", *devices.SCALINGS)

    iterative: ClassVar[bool] = False

    def resolve(self, problem: Problem) -> Self:
        devices.check_scaling("LinearReference", self.scaling, problem.federation)
        return self

    def init(self, problem: Problem, w: Params) -> State:
        federation = problem.federation
        (name, like), *_ = w.items()
        models, included = [], []
        for client in range(len(federation)) if self.fit == "separate" else [None]:
            batch = devices.pooled(federation) if client is None else federation.train.full_batch(client)
            scale = devices.scale_of(federation, client, self.scaling)
            theta, chosen = FITS[self.fit](*scale.apply(batch))
            models.append(Params({name: scale.raw(theta, like)}))
            included.append(chosen)
        return {"models": models, "included": torch.stack(included), "target_sd": float(scale.y_factor)}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["models"][client if len(state["models"]) > 1 else 0]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        federation, chosen = problem.federation, state["included"]
        yield Metric("target_sd", state["target_sd"])
        if self.fit != "separate":
            for j, value in enumerate(chosen[0].tolist()):
                yield Metric("theta_included", float(value), step=j)
        yield Metric("included", chosen.double().sum(1).mean().item())
        yield from devices.inclusion_metrics(chosen, federation.facts)
        yield from _bounds(federation, self.fit == "separate")


def _bounds(federation: Federation, own: bool) -> Iterator[Metric]:
    """Errors of the trivial predictor and, where the test targets' means are known, of these."""
    everyone, train = devices.pooled(federation).y.mean(), federation.train
    means = [train.samples.y[train.of(k)].mean() if own else everyone for k in range(len(federation))]
    for split, held in federation.splits():
        if split != "train" and len(held) == len(federation):
            clients = np.flatnonzero(held.sizes).tolist()
            squares = [(held.samples.y[held.of(k)] - means[k]).square() for k in clients]
            yield Metric("rmse_trivial", torch.cat(squares).mean().sqrt().item(), split)
            yield Metric("a_rmse_trivial", _a_rmse(squares), split)
    if federation.test is not None and "test_mean" in federation.facts:
        squares = devices.noise_squares(federation, np.flatnonzero(federation.test.sizes).tolist())
        yield Metric("a_rmse_floor", _a_rmse(squares), "test")


def _a_rmse(squares: list[Tensor]) -> float:
    return float(np.mean([own.mean().sqrt().item() for own in squares]))
