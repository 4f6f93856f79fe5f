"""Linear models without rounds: closed forms for each device, and the best possible estimator.

- `least_squares`: every device alone, trained to convergence (thesis ch. 3, Separate without its limit of steps).
- `ridge`: Dis-Ridge (Zhang, Duchi and Wainwright 2015, as in thesis §3.6.2): every device minimises
  (1/n)Σ(y − xᵀθ)² + λ‖θ‖², and all use the plain average. The thesis deals data evenly to m nodes; here the devices are
  the nodes, since their data may not be moved.
- `bayes`: the posterior mean of all θ_k under the true Ω and σ² of simulated data. No estimator has a smaller expected
  squared error, so this bounds the gain of any sharing between devices.
- `multitask`: all θ_k with a learned relationship between devices, centrally (linear/multitask.py).

Also recorded: a_rmse_trivial, the error of each device's mean training target, and a_rmse_floor, the error of the true
means on noisy test targets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Metric, Problem, State, one_of, positive
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear import estimators
from fedrepro.studies.fedlin.linear.devices import noise_squares
from fedrepro.studies.fedlin.linear.multitask import multitask
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs


@dataclass(frozen=True)
class ClosedForm(Algorithm):
    fit: str = one_of("least_squares", "least_squares", "ridge", "bayes", "multitask")
    penalty: float = positive(0.01)  # λ of ridge

    iterative: ClassVar[bool] = False

    def resolve(self, problem: Problem) -> Self:
        if not isinstance(problem.task.model, LinearOutputs):
            raise UserError("ClosedForm: needs the model linear_outputs")
        if self.fit == "bayes" and not {"omega", "sigma"} <= set(problem.federation.facts):
            raise UserError("ClosedForm: fit = 'bayes': this data set does not know its true omega and sigma")
        if self.fit == "bayes" and not np.all(problem.federation.facts["sigma"] > 0):
            raise UserError("ClosedForm: fit = 'bayes': needs noise; σ is 0")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        holdings = problem.federation.train
        model = cast(LinearOutputs, problem.task.model)
        whole = problem.summaries("train")  # H, b of the mean losses
        linear = whole.linear[..., : model.targets]  # of one arm
        if self.fit in ("least_squares", "multitask"):
            each = [holdings.full_batch(k) for k in range(len(holdings))]
            x, y = [b.x for b in each], [b.y.view(len(b.y), model.targets) for b in each]
            alone = (estimators.least_squares(*own) for own in zip(x, y, strict=True))
            theta = multitask(x, y) if self.fit == "multitask" else torch.stack(list(alone))
        elif self.fit == "ridge":
            average = estimators.ridge(whole.curvature, linear, self.penalty).mean(0)
            theta = average.expand(len(holdings), *average.shape)
        else:
            facts, n = problem.federation.facts, torch.from_numpy(holdings.sizes).to(linear)
            gram, moment = n[:, None, None] * whole.curvature, n[:, None, None] * linear
            outputs = moment.shape[-1]
            omega = torch.from_numpy(facts["omega"]).to(gram).expand(outputs, *facts["omega"].shape[-2:])
            known = zip(moment.unbind(-1), omega, np.broadcast_to(facts["sigma"] ** 2, outputs).tolist(), strict=True)
            theta = torch.stack([estimators.posterior_mean(gram, *own) for own in known], dim=-1)
        return {"like": w, "theta": model.repeated(theta).reshape(len(holdings), -1)}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["like"].unflatten(state["theta"][max(client, 0)])

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        federation, facts, train = problem.federation, problem.federation.facts, problem.federation.train
        for split, held in federation.splits():
            if split != "train":
                scored = np.flatnonzero(facts.get("scored", np.ones(len(held), dtype=bool)) & (held.sizes > 0)).tolist()
                means = {k: train.samples.y[train.of(k)].mean(0) for k in scored}
                squares = [(held.samples.y[held.of(k)] - mean).square() for k, mean in means.items()]
                yield from _a_rmse("a_rmse_trivial", squares, split, problem)
        yield from estimators.parameter_errors(state["theta"], problem)
        if "test_mean" in facts:
            squares = noise_squares(federation, np.flatnonzero(facts["scored"]).tolist())
            yield from _a_rmse("a_rmse_floor", squares, "test", problem)


def _a_rmse(metric: str, squares: list[Tensor], split: str, problem: Problem) -> Iterator[Metric]:
    """A-RMSE per output from the devices' squared errors, [n] or [n, S] each."""
    model = cast(LinearOutputs, problem.task.model)
    errors = model.repeated(torch.stack([own.mean(0).sqrt().reshape(-1) for own in squares]).mean(0))
    for name, value in zip(model.names(problem.federation.facts), errors.tolist(), strict=True):
        yield Metric(metric, value, split, group=name)
