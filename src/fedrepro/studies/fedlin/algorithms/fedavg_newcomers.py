"""FedAvg with new devices, the baseline of hm2_newcomers.py: the last `newcomers` devices take no part, and after every
round go on from the server's model with their first n samples, by gradient descent to its end. Before the first round
that model is 0: what a device has that knows nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.algorithms.fedavg_transfer import FedAvgTransfer
from fedrepro.studies.fedlin.linear.newcomers import errors, nearest, require_summaries


@dataclass(frozen=True)
class FedAvgNewcomers(FedAvgTransfer):
    def resolve(self, problem):
        require_summaries(problem, self.newcomers, "FedAvgNewcomers")
        return super().resolve(problem)

    def metrics(self, problem, state, round):
        if self.newcomers:
            start = state["w"].flatten()
            yield from errors(problem, self.newcomers, {"model": lambda x, y: nearest(x, y, start)})
