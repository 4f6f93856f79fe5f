"""Linear models without rounds: what each device can have in closed form, and what nobody can do better.

- `least_squares`: every device alone, trained to convergence (thesis ch. 3, Separate without its limit of steps).
- `ridge`: Dis-Ridge (Zhang, Duchi and Wainwright 2015, as thesis §3.6.2 states it): every device minimises
  (1/n)Σ(y − xᵀθ)² + λ‖θ‖² and all of them use the plain average. The thesis deals data out evenly to m nodes; here the
  devices are the nodes, since their data may not be moved.
- `bayes`: the posterior mean of all θ_k under the true Ω and σ² of simulated data. No estimator has a smaller expected
  squared error, so this bounds what any sharing between devices can gain.

Also recorded: a_rmse_trivial, the error of predicting each device's mean training target, and a_rmse_floor, the error
of the true means themselves against noisy test targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from fedrepro.core.algorithm import Algorithm, Metric
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear.covariance import output_names, parameter_errors
from fedrepro.studies.fedlin.linear.estimators import least_squares, posterior_mean, ridge
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs


@dataclass(frozen=True)
class ClosedForm(Algorithm):
    fit: str = "least_squares"
    penalty: float = 0.01  # λ of ridge

    iterative: ClassVar[bool] = False

    def __post_init__(self):
        self.require(self.fit in ("least_squares", "ridge", "bayes"), "fit", "one of least_squares, ridge, bayes")
        self.require(self.penalty > 0, "penalty", "must be positive")

    def resolve(self, problem):
        if not isinstance(problem.task.model, LinearOutputs):
            raise UserError("ClosedForm: needs the model linear_outputs")
        if self.fit == "bayes" and not {"omega", "sigma"} <= set(problem.federation.facts):
            raise UserError("ClosedForm: fit = 'bayes': this data set does not know its true omega and sigma")
        if self.fit == "bayes" and not np.all(problem.federation.facts["sigma"] > 0):
            raise UserError("ClosedForm: fit = 'bayes': needs noise; σ is 0")
        return self

    def init(self, problem, w):
        holdings = problem.federation.train
        whole = problem.summaries("train")  # H, b of the mean losses
        if self.fit == "least_squares":
            each = (holdings.full_batch(k) for k in range(len(holdings)))
            outputs = w["w"].shape[1]
            theta = torch.stack([least_squares(b.x, b.y.view(len(b.y), outputs)) for b in each])
        elif self.fit == "ridge":
            average = ridge(whole.curvature, whole.linear, self.penalty).mean(0)
            theta = average.expand(len(holdings), *average.shape)
        else:
            facts, n = problem.federation.facts, torch.from_numpy(holdings.sizes).to(whole.linear)
            gram, moment = n[:, None, None] * whole.curvature, n[:, None, None] * whole.linear
            outputs = moment.shape[-1]
            omega = torch.from_numpy(facts["omega"]).to(gram).expand(outputs, *facts["omega"].shape[-2:])
            variances = np.broadcast_to(facts["sigma"] ** 2, outputs)
            each = (posterior_mean(gram, moment[..., s], omega[s], float(variances[s])) for s in range(outputs))
            theta = torch.stack(list(each), dim=-1)
        return {"like": w, "theta": theta.reshape(len(holdings), -1)}

    def model(self, state, local, client):
        return state["like"].unflatten(state["theta"][max(client, 0)])

    def metrics(self, problem, state, round):
        federation = problem.federation
        names = output_names(federation.facts)
        for split, holdings in federation.splits():
            if split == "train":
                continue
            scored = federation.facts.get("scored", np.ones(len(holdings), dtype=bool)) & (holdings.sizes > 0)
            for name, value in zip(names, _trivial(federation.train, holdings, scored), strict=True):
                yield Metric("a_rmse_trivial", value, split, group=name)
        yield from parameter_errors(state["theta"], federation.facts)
        if "test_mean" in federation.facts:
            for name, value in zip(names, _floor(federation), strict=True):
                yield Metric("a_rmse_floor", value, "test", group=name)


def _trivial(train, held, scored: np.ndarray) -> list[float]:
    """A-RMSE of each device's mean training target on another split: one per output."""
    errors = []
    for k in np.flatnonzero(scored):
        y, mean = held.samples.y[held.of(k)], train.samples.y[train.of(k)].mean(0)
        errors.append((y - mean).square().mean(0).sqrt().reshape(-1))
    return torch.stack(errors).mean(0).tolist()


def _floor(federation) -> list[float]:
    """A-RMSE of the true means against the test targets: one per output."""
    test, start = federation.test, int(federation.test.rows.min())  # a seed's rows follow one another in memory
    mean = torch.from_numpy(federation.facts["test_mean"])
    errors = []
    for k in np.flatnonzero(federation.facts["scored"]):
        rows = test.of(k)
        y = test.samples.y[rows]
        errors.append((y - mean[rows - start].view(y.shape)).square().mean(0).sqrt().reshape(-1))
    return torch.stack(errors).mean(0).tolist()
