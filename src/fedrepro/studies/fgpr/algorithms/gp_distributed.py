"""Distributed Gaussian processes that a server evaluates (thesis §4.7, Table 4.3), without rounds.

- `dgp` (Deisenroth and Ng 2015): the devices' experts share θ, to convergence of Σ p_k L_k (gp/maximum.py), and their
  predictions are combined by the robust Bayesian committee machine (gp/experts.py); other rules are recorded beside it.
- `dvi` (Gal et al. 2014): a sparse variational process whose bound is a sum over devices (gp/variational.py).

Errors are those of the server on all test samples (rmse_central, as the thesis has them) and on each device's.
uploaded: numbers that devices sent; exchanges: how often. Several outputs are fitted one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Predictor
from fedrepro.studies.fgpr.gp.device_errors import Prediction, columns, device_errors, output_names
from fedrepro.studies.fgpr.gp.exact import predict
from fedrepro.studies.fgpr.gp.experts import RULES, combine
from fedrepro.studies.fgpr.gp.maximum import STARTS, maximise
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP

FITS = ("dgp", "dvi")


@dataclass(frozen=True)
class GPDistributed(Predictor):
    fit: str = "dgp"
    inducing: int = 100
    iterations: int = 100
    starts: int = 1

    iterative: ClassVar[bool] = False

    def __post_init__(self):
        self.require(self.fit in FITS, "fit", f"one of {', '.join(FITS)}")
        for key in ("inducing", "iterations", "starts"):
            self.require(getattr(self, key) > 0, key, "must be positive")

    def init(self, problem, w):
        federation = problem.federation
        batches = [federation.train.full_batch(k) for k in range(len(federation))]
        x_new = federation.test.samples.x[federation.test.rows]
        found = []
        for s in range(problem.task.model.outputs_apart):
            devices = [(b.x, columns(b.y)[:, s]) for b in batches]
            found.append((self._experts if self.fit == "dgp" else self._sparse)(problem, devices, x_new))
        laws, uploaded, exchanges = zip(*found, strict=True)
        rules = {rule: torch.stack([law[rule] for law in laws], dim=-1) for rule in laws[0]}  # [2, tests, S]
        return {"laws": rules, "uploaded": float(sum(uploaded)), "exchanges": float(max(exchanges))}

    def assess(self, problem, state, split):
        if split != "test":
            return None
        federation, test = problem.federation, problem.federation.test
        names = output_names(federation, problem.task.model.outputs_apart)
        y, metrics, offsets = columns(test.samples.y[test.rows]), [], test.offsets
        for rule, (mean, _) in state["laws"].items():
            central = (mean - y).square().mean(0).sqrt().tolist()
            name = "rmse_central" if rule in ("rbcm", "dvi") else f"rmse_central_{rule}"
            metrics += [Metric(name, v, split, group=group) for group, v in zip(names, central, strict=True)]
        mean, variance = state["laws"]["rbcm" if self.fit == "dgp" else "dvi"]
        held = {k: slice(offsets[k], offsets[k + 1]) for k in np.flatnonzero(test.sizes).tolist()}
        predictions = {k: Prediction(mean[rows], variance[rows]) for k, rows in held.items()}
        mse, errors = device_errors(predictions, federation, split, names)
        return mse, mse, [*metrics, *errors]

    def metrics(self, problem, state, round):
        yield Metric("uploaded", state["uploaded"])
        yield Metric("exchanges", state["exchanges"])

    def _experts(self, problem, devices, x_new: Tensor) -> tuple[dict[str, Tensor], float, int]:
        model = problem.task.model
        fitted = maximise(
            model.kernel,
            devices,
            problem.weights,
            ard=model.ard,
            starts=STARTS[: self.starts],
            iterations=self.iterations,
        )
        theta = fitted.theta
        each = [predict(model.kernel, theta, x, y, x_new) for x, y in devices]
        mean, variance = (torch.stack(part) for part in zip(*each, strict=True))
        prior = theta.variance.expand(len(x_new))
        variance = torch.minimum(variance.clamp_min(1e-12), prior)
        laws = {rule: combine(rule, mean, variance, prior) for rule in RULES}
        laws = {rule: torch.stack([m, v + theta.noise]) for rule, (m, v) in laws.items()}
        return laws, mean.numel() + variance.numel(), 1

    def _sparse(self, problem, devices, x_new: Tensor) -> tuple[dict[str, Tensor], float, int]:
        rng = np.random.default_rng(0)  # of the inducing points: no part of an experiment's randomness
        model = DistributedVariationalGP(
            self.inducing,
            problem.task.model.kernel,
            problem.task.model.ard,
            move_inducing=False,
            starts=self.starts,
            evaluations=self.iterations,
        ).fit(devices, rng)
        exchanges = model.effort.evaluations
        return {"dvi": torch.stack(model.predict(x_new))}, model.sent() * len(devices) * exchanges, exchanges
