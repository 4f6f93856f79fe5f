"""FedAvg with the same sum of steps as a stochastic approximation (paper 000): an arm that tells a tapering step from a
smaller one.

With H(m) = 1 + ½ + … + 1/m the epochs' steps of a/n sum to a·H(RN), those of a/(⌊n/N⌋ + 1) to a·N·H(R). `constant`
takes their mean ā in every epoch; `cosine` takes ā·(1 + cos π(n + ½)/RN) in epoch n = 0, 1, …, which starts at 2ā, ends
at 0 and has the same sum.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Problem, Trial, limited
from fedrepro.core.federation import Batches
from fedrepro.studies.sa.algorithms.fedavg_scheduled import cosine


@dataclass(frozen=True)
class FedAvgMatched(FedAvg):
    #: meaning of n in the schedule with the same sum; lr is its a
    count: str = limited("rounds", lambda v: v in ("epochs", "rounds"), "must be epochs or rounds")
    shape: str = limited("constant", lambda v: v in ("constant", "cosine"), "must be constant or cosine")
    rounds: int = 1  # R, the run's own
    trial: ClassVar[Trial] = Trial(({"lr": 0.1, "shape": "cosine"}, {"lr": 0.2, "count": "epochs"}))

    def resolve(self, problem: Problem) -> Self:
        return replace(self, rounds=problem.rounds)

    def step(self, batches: Batches, t: int) -> Any:
        terms = self.rounds * batches.epochs if self.count == "epochs" else self.rounds
        step = super().step(batches, t) * (sum(1 / n for n in range(1, terms + 1)) / terms)  # ā
        if self.shape == "constant":
            return step
        return step * 2 * cosine(batches, t, self.rounds)
