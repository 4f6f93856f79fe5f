"""The second stochastic approximation of paper 000, §V-D: a_n = 0.1/(⌊n/N⌋ + 1), a step that tapers with the rounds.

With n = 0, 1, … the N epochs of a round share one step, 0.1 over the round's number counted from 1. (Counted from 1 as
for `sa`, the last epoch of every round would have the next round's step.)
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.federation import Batches


@dataclass(frozen=True)
class SARound(FedAvg):
    def step(self, batches: Batches, t: int):
        return super().step(batches, t) / (batches.round + 1)
