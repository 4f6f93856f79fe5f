"""FedAvg with new devices, the baseline of hm2_newcomers.py: the last `newcomers` devices take no part, and after every
round go on from the server's model with their first n samples, by gradient descent to its end. Before the first round
that model is 0: what a device has that knows nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.params import weighted_sum
from fedrepro.errors import UserError
from fedrepro.linear.newcomers import errors, nearest, require_summaries


@dataclass(frozen=True)
class FedAvgNewcomers(FedAvg):
    newcomers: int = 0

    server_only = FedAvg.server_only | {"newcomers"}

    def __post_init__(self):
        super().__post_init__()
        self.require(self.newcomers >= 0, "newcomers", "must not be negative")

    def resolve(self, problem):
        if self.newcomers >= len(problem.federation):
            raise UserError(
                f"FedAvgNewcomers: newcomers = {self.newcomers}: there are {len(problem.federation)} devices"
            )
        require_summaries(problem, self.newcomers, "FedAvgNewcomers")
        return self

    def init(self, problem, w):
        return {"w": w, "old": len(problem.federation) - self.newcomers}

    def participants(self, state, clients):
        return clients[clients < state["old"]]

    def server_update(self, state, uploads, cohort):
        return {**state, "w": weighted_sum(uploads, cohort.weights / cohort.weights.sum())}

    def metrics(self, problem, state, round):
        if self.newcomers:
            start = state["w"].flatten()
            yield from errors(problem, self.newcomers, {"model": lambda x, y: nearest(x, y, start)})
