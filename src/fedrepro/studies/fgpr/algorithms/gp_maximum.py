"""Maximum likelihood to convergence: the end of Separate and FGPR (thesis ch. 4) without a limit of steps.

`shared: false` maximises every device's own likelihood (Separate), `true` the objective (4.3), Σ p_k L_k, of all
devices together (FGPR): full batches, L-BFGS-B from several starts (gp/maximum_likelihood.py). This separates the gain
of sharing, at convergence, from the cost of a budget. With `newcomers` the last devices' data do not count in the
shared fit. `known`: see fgpr.py. `alone: smallest` fits the device with fewest samples by itself, the θ that it would
have without the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from fedrepro.core.algorithm import Algorithm, Metric, Problem, State, not_negative, one_of, positive
from fedrepro.core.federation import Batch
from fedrepro.core.params import Params
from fedrepro.studies.fgpr.gp.device_errors import columns, parameter_errors, true_lengthscale
from fedrepro.studies.fgpr.gp.exact import Theta
from fedrepro.studies.fgpr.gp.maximum_likelihood import STARTS, estimate


@dataclass(frozen=True)
class GPMaximum(Algorithm):
    shared: bool = True
    newcomers: int = not_negative(0)
    known: str = one_of("nothing", "nothing", "lengthscale")
    alone: str = one_of("none", "none", "smallest")
    iterations: int = positive(200)
    starts: int = positive(4)
    most: int = positive(2000)  # samples per device in the fit, the first ones

    iterative: ClassVar[bool] = False

    def init(self, problem: Problem, w: Params) -> State:
        train = problem.federation.train
        everyone = [train.full_batch(k) for k in range(len(train))]
        weights, old = problem.weights, len(train) - self.newcomers
        if self.alone == "smallest":
            fits = [self._fit(problem, w, [everyone[int(np.argmin(train.sizes))]], [1.0])]
        elif not self.shared:
            fits = [self._fit(problem, w, [batch], [1.0]) for batch in everyone]
        else:
            fits = [self._fit(problem, w, everyone[:old], weights[:old] / weights[:old].sum())]
        return {"models": [f[0] for f in fits], "evaluations": sum(f[1] for f in fits)}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["models"][0 if self.shared else max(client, 0)]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield Metric("evaluations", state["evaluations"])
        yield from parameter_errors(problem, state["models"])

    def _fit(
        self, problem: Problem, w: Params, batches: Sequence[Batch], weights: Sequence[float] | np.ndarray
    ) -> tuple[Params, float]:
        """θ of every output, stacked, and the number of evaluations."""
        model: Any = problem.task.model
        minima = [model.minima["lengthscale"], *(model.minima[k] ** model.power for k in ("signal", "noise"))]
        options = {"ard": model.ard, "minima": minima, "starts": STARTS[: self.starts], "iterations": self.iterations}
        fixed = true_lengthscale(problem.federation, w["lengthscale"]) if self.known == "lengthscale" else None
        found = []
        for s in range(len(w["signal"])):
            devices = [(b.x[: self.most], columns(b.y)[: self.most, s]) for b in batches]
            own = None if fixed is None else fixed[s]
            found.append(estimate(model.kernel, devices, weights, lengthscale=own, **options))
        theta = Theta(*map(torch.stack, zip(*(f.theta for f in found), strict=True)))
        return model.from_theta(theta), float(sum(f.evaluations for f in found))
