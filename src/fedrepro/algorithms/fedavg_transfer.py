"""FedAvg with late devices (thesis App. C.3): the last `newcomers` devices do not train and use the server's model."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Problem, State, Trial, not_negative
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.errors import UserError


@dataclass(frozen=True)
class FedAvgTransfer(FedAvg):
    newcomers: int = not_negative(0)

    server_only = FedAvg.server_only | {"newcomers"}
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1}))

    def resolve(self, problem: Problem) -> Self:
        devices = len(problem.federation)
        if self.newcomers >= devices:
            raise UserError(f"{type(self).__name__}: newcomers = {self.newcomers}: there are {devices} devices")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        return {**super().init(problem, w), "old": len(problem.federation) - self.newcomers}

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        return clients[clients < state["old"]] if self.newcomers else clients

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        weights = cohort.weights / cohort.weights.sum() if self.newcomers else cohort.weights
        return {**state, "w": weighted_sum(uploads, weights)}
