"""FedAvg with new devices, the baseline of hm2_newcomers.py: the last `newcomers` devices do not take part. After every
round they run gradient descent from the server's model on their first n samples, to its limit. Before the first round
that model is 0, as for a device that knows nothing of the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from fedrepro.algorithms.fedavg_transfer import FedAvgTransfer
from fedrepro.core.algorithm import Metric, Problem, State
from fedrepro.studies.fedlin.linear.estimators import errors, nearest, require_summaries


@dataclass(frozen=True)
class FedAvgNewcomers(FedAvgTransfer):
    def resolve(self, problem: Problem) -> Self:
        require_summaries(problem, self.newcomers, "FedAvgNewcomers")
        return super().resolve(problem)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if self.newcomers:
            start = state["w"].flatten()
            yield from errors(problem, self.newcomers, {"model": lambda x, y: nearest(x, y, start)})
