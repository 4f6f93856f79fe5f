"""FedAvg with a step that decays as is usual for networks: an arm that tells stochastic approximation from tapering.

`step` divides the step by ten at half and at three quarters of the rounds (He et al. 2016, arXiv 1512.03385, §4.2, in
shares of the run). `cosine` takes ½(1 + cos π(n + ½)/RN) of it in epoch n = 0, 1, … of RN (Loshchilov, Hutter 2017,
arXiv 1608.03983, without restarts). A decay as 1/√n is the setting δ = ½ of `sa`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Problem, Trial, limited
from fedrepro.core.federation import Batches


@dataclass(frozen=True)
class FedAvgScheduled(FedAvg):
    shape: str = limited("step", lambda v: v in ("step", "cosine"), "must be step or cosine")
    rounds: int = 1  # R, the run's own
    trial: ClassVar[Trial] = Trial(({"lr": 0.1, "shape": "cosine"}, {"lr": 0.2}))

    def resolve(self, problem: Problem) -> Self:
        return replace(self, rounds=problem.rounds)

    def step(self, batches: Batches, t: int) -> Any:
        if self.shape == "step":
            drops = (2 * batches.round >= self.rounds) + (4 * batches.round >= 3 * self.rounds)
            return super().step(batches, t) * 0.1**drops
        return super().step(batches, t) * cosine(batches, t, self.rounds)


def cosine(batches: Batches, t: int, rounds: int) -> float:
    """From nearly 1 to nearly 0 over the epochs of a run, ½ on average; constant within an epoch."""
    n = batches.round * batches.epochs + batches.epoch(t)
    return (1 + math.cos(math.pi * (n + 0.5) / (rounds * batches.epochs))) / 2
