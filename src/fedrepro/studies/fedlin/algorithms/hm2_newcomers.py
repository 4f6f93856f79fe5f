"""HM2 by expectation propagation (hm2_ep.py) with new devices (thesis §3.4.2.1): the last `newcomers` devices do not
take part. After every round they combine the server's q(φ) with their first n samples.

- `q(φ)`: the posterior mean of θ given φ at the mean of q: E[θ] of eq. (3.10) without the spread of q;
- `mean of q`: the limit of gradient descent from the mean of μ, as the thesis suggests ("treat the posterior mean of φ
  as an initial model parameter");
- `limit`: as `q(φ)`, with the true law of θ and the true noise.
σ comes from the other devices' residuals, or is `noise`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch

from fedrepro.core.algorithm import Metric, Problem, State, Trial, not_negative, one_of
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.algorithms.hm2_ep import HM2EP
from fedrepro.studies.fedlin.linear import ep
from fedrepro.studies.fedlin.linear.estimators import errors, nearest, require_summaries, shrink


@dataclass(frozen=True)
class HM2Newcomers(HM2EP):
    prior: str = one_of("normal", "normal")
    newcomers: int = not_negative(0)

    server_only = HM2EP.server_only | {"newcomers"}
    trial: ClassVar[Trial] = HM2EP.trial._replace(settings=({"noise": 0.5, "chains": 12}, {"noise": 0.7, "chains": 12}))

    def resolve(self, problem: Problem) -> Self:
        if self.newcomers >= len(problem.federation):
            raise UserError(f"HM2Newcomers: newcomers = {self.newcomers}: there are {len(problem.federation)} devices")
        require_summaries(problem, self.newcomers, "HM2Newcomers")
        return super().resolve(problem)

    def init(self, problem: Problem, w: Params) -> State:
        old = len(problem.federation) - self.newcomers
        variance = ep.residual_variance(self._scaled(problem, k)[1] for k in range(old))
        noise = self.noise**2 if self.noise or variance is None else float(variance)
        return {**super().init(problem, w), "variance": noise}

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        return clients[clients < len(state["sites"]["r"]) - self.newcomers]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from super().metrics(problem, state, round)
        if not self.newcomers:
            return
        mu, log_tau = ep.moments(state["q"])[0].chunk(2)
        ways = {"q(φ)": lambda x, y: shrink(x, y, mu, log_tau.exp(), state["variance"])}
        ways["mean of q"] = lambda x, y: nearest(x, y, mu)
        facts = problem.federation.facts
        if {"mean", "variance", "sigma"} <= set(facts):
            mean, variance = (torch.from_numpy(facts[name]).to(mu) for name in ("mean", "variance"))
            ways["limit"] = lambda x, y: shrink(x, y, mean, variance, float(facts["sigma"]) ** 2)
        yield from errors(problem, self.newcomers, ways)
