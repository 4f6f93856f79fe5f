"""Distributed Gaussian processes evaluated at a server (thesis §4.7, Table 4.3), without rounds.

- `dgp` (Deisenroth and Ng 2015): the devices' experts share θ, to convergence of Σ p_k L_k (gp/maximum_likelihood.py).
  The robust Bayesian committee machine combines their predictions (`combine`); other rules are recorded as well.
- `dvi` (Gal et al. 2014): a sparse variational process whose bound is a sum over devices (gp/variational.py).

Errors are the server's on all test samples (rmse_central, as in the thesis) and on each device's. uploaded: numbers
sent by the devices; exchanges: how often. Several outputs are fitted in sequence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Predictor, Problem, State, one_of, positive
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.device_errors import columns, device_errors, output_names
from fedrepro.studies.fgpr.gp.exact import Data, Law, predict
from fedrepro.studies.fgpr.gp.maximum_likelihood import STARTS, estimate
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP

FITS = ("dgp", "dvi")
RULES = ("poe", "gpoe", "bcm", "rbcm")
#: per rule mean and variance [2, tests]; numbers sent; exchanges
Found = tuple[dict[str, Tensor], float, int]


@dataclass(frozen=True)
class GPDistributed(Predictor):
    fit: str = one_of("dgp", *FITS)
    inducing: int = positive(100)
    iterations: int = positive(100)

    iterative: ClassVar[bool] = False

    def init(self, problem: Problem, w: Params) -> State:
        model: Any = problem.task.model
        train = problem.federation.train
        test: Any = problem.federation.test
        batches = [train.full_batch(k) for k in range(len(train))]
        fit = self._experts if self.fit == "dgp" else self._sparse
        found = [
            fit(problem, [(b.x, columns(b.y)[:, s]) for b in batches], test.samples.x[test.rows])
            for s in range(model.outputs_apart)
        ]
        laws, uploaded, exchanges = zip(*found, strict=True)
        rules = {rule: torch.stack([law[rule] for law in laws], dim=-1) for rule in laws[0]}  # [2, tests, S]
        return {"laws": rules, "uploaded": float(sum(uploaded)), "exchanges": float(max(exchanges))}

    def assess(self, problem: Problem, state: State, split: str) -> tuple[np.ndarray, np.ndarray, list[Metric]] | None:
        if split != "test":
            return None
        federation = problem.federation
        test: Any = federation.test
        model: Any = problem.task.model
        names = output_names(federation, model.outputs_apart)
        y, offsets = columns(test.samples.y[test.rows]), test.offsets
        metrics: list[Metric] = []
        for rule, (mean, _) in state["laws"].items():
            central = (mean - y).square().mean(0).sqrt().tolist()
            name = "rmse_central" if rule in ("rbcm", "dvi") else f"rmse_central_{rule}"
            metrics += [Metric(name, v, split, group=group) for group, v in zip(names, central, strict=True)]
        mean, variance = state["laws"]["rbcm" if self.fit == "dgp" else "dvi"]
        held = {k: slice(offsets[k], offsets[k + 1]) for k in np.flatnonzero(test.sizes).tolist()}
        predictions = {k: (mean[rows], variance[rows]) for k, rows in held.items()}
        mse, errors = device_errors(predictions, federation, split, names)
        return mse, mse, [*metrics, *errors]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield Metric("uploaded", state["uploaded"])
        yield Metric("exchanges", state["exchanges"])

    def _experts(self, problem: Problem, devices: Data, x_new: Tensor) -> Found:
        model: Any = problem.task.model
        options = {"ard": model.ard, "starts": STARTS[:1], "iterations": self.iterations}
        theta = estimate(model.kernel, devices, problem.weights, **options).theta
        each = [predict(model.kernel, theta, x, y, x_new) for x, y in devices]
        mean, variance = (torch.stack(part) for part in zip(*each, strict=True))
        prior = theta.variance.expand(len(x_new))
        variance = torch.minimum(variance.clamp_min(1e-12), prior)
        combined = {rule: combine(rule, mean, variance, prior) for rule in RULES}
        laws = {rule: torch.stack([m, v + theta.noise]) for rule, (m, v) in combined.items()}
        return laws, mean.numel() + variance.numel(), 1

    def _sparse(self, problem: Problem, devices: Data, x_new: Tensor) -> Found:
        model: Any = problem.task.model
        options: dict[str, Any] = {"move_inducing": False, "evaluations": self.iterations}
        sparse = DistributedVariationalGP(self.inducing, model.kernel, model.ard, **options)
        sparse.fit(devices, np.random.default_rng(0))  # of the inducing points: no part of an experiment's randomness
        exchanges = sparse.effort.evaluations
        return {"dvi": torch.stack(sparse.predict(x_new))}, sparse.sent() * len(devices) * exchanges, exchanges


def combine(rule: str, mean: Tensor, variance: Tensor, prior: Tensor) -> Law:
    """mean, variance [K, m] of the function by K experts, prior variance v_0 [m] → the joint law, [m] and [m].

    All rules give a law of precision Σ β_k/v_k + (prior term) and mean (Σ β_k m_k/v_k) / precision:

    | rule | β_k | prior term |
    |---|---|---|
    | poe | 1 | – |
    | gpoe | 1/K | – |
    | bcm | 1 | (1 − K)/v_0 |
    | rbcm | ½ (log v_0 − log v_k) | (1 − Σ β_k)/v_0 |

    β_k also stands in rbcm's precision. Without it, as in one released code, the law does not return to the prior where
    no expert has data.
    """
    if rule not in RULES:
        raise UserError(f"rule: '{rule}' is unknown; one of {', '.join(RULES)}")
    beta = torch.ones_like(variance)
    if rule == "gpoe":
        beta = beta / len(variance)
    elif rule == "rbcm":
        beta = 0.5 * (prior.log() - variance.log()).clamp_min(0)  # rounding may put v_k above v_0
    precision = (beta / variance).sum(0)
    if rule in ("bcm", "rbcm"):
        precision = precision + (1 - beta.sum(0)) / prior
    return (beta * mean / variance).sum(0) / precision, 1 / precision
