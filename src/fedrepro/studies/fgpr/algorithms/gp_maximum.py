"""Maximum likelihood to convergence: where Separate and FGPR (thesis ch. 4) would be without a limit of steps.

`shared: false` maximises every device's own likelihood (Separate), `true` the objective (4.3), Σ p_k L_k, of all
devices together (FGPR): full batches, L-BFGS-B from several starts (gp/maximum.py). Between them and the methods with
rounds stand two differences: what sharing gains at equal convergence, and what a budget costs. With `newcomers` the
last devices' data do not count in the shared fit. `known`: see fgpr.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedrepro.core.algorithm import Algorithm, Metric
from fedrepro.core.params import Params
from fedrepro.studies.fgpr.gp.device_errors import columns
from fedrepro.studies.fgpr.gp.exact import Theta
from fedrepro.studies.fgpr.gp.maximum import STARTS, maximise
from fedrepro.studies.fgpr.gp.truth import parameter_errors, true_lengthscale


@dataclass(frozen=True)
class GPMaximum(Algorithm):
    shared: bool = True
    newcomers: int = 0
    known: str = "nothing"
    iterations: int = 200
    starts: int = 4
    most: int = 2000  # samples of a device that the fit uses: the first, where there are more

    iterative: ClassVar[bool] = False

    def __post_init__(self):
        self.require(self.known in ("nothing", "lengthscale"), "known", "one of nothing, lengthscale")
        self.require(self.newcomers >= 0, "newcomers", "must not be negative")
        for key in ("iterations", "starts", "most"):
            self.require(getattr(self, key) > 0, key, "must be positive")

    def init(self, problem, w):
        train = problem.federation.train
        everyone = [train.full_batch(k) for k in range(len(train))]
        weights, old = problem.weights, len(train) - self.newcomers
        if not self.shared:
            fits = [self._fit(problem, w, [batch], [1.0]) for batch in everyone]
        else:
            fits = [self._fit(problem, w, everyone[:old], weights[:old] / weights[:old].sum())]
        return {"models": [f[0] for f in fits], "evaluations": sum(f[1] for f in fits)}

    def model(self, state, local, client):
        return state["models"][0 if self.shared else max(client, 0)]

    def metrics(self, problem, state, round):
        yield Metric("evaluations", state["evaluations"])
        yield from parameter_errors(problem, state["models"])

    def _fit(self, problem, w, batches, weights) -> tuple[Params, float]:
        """θ of every output, stacked, and the evaluations it took."""
        model, thetas, evaluations = problem.task.model, [], 0
        fixed = true_lengthscale(problem.federation, w["lengthscale"]) if self.known == "lengthscale" else None
        for s in range(len(w["signal"])):
            devices = [(b.x[: self.most], columns(b.y)[: self.most, s]) for b in batches]
            found = maximise(
                model.kernel,
                devices,
                weights,
                ard=model.ard,
                minima=[model.minima["lengthscale"], *(model.minima[k] ** model.power for k in ("signal", "noise"))],
                starts=STARTS[: self.starts],
                iterations=self.iterations,
                lengthscale=None if fixed is None else fixed[s],
            )
            thetas.append(found.theta)
            evaluations += found.evaluations
        return model.from_theta(Theta(*map(torch.stack, zip(*thetas, strict=True)))), float(evaluations)
