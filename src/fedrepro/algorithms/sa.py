"""Stochastic approximation (paper 000, eq. (3)): FedAvg whose step tapers, a_n = a/n^δ; §V-D has a = 0.1, δ = 1.

What n counts the paper leaves open. Its Fig. 1 speaks of epochs, and so does this by default: n = 1, 2, … over the run
(round·N + epoch + 1 with both counted from 0), a_n held within an epoch. With `count: steps` n counts gradient steps,
as eq. (3) reads.

Deviations: eq. (1) and (3) take no gradient step when n is a multiple of N and (33) takes N of them a round; this does
as (33). (33) begins at a_0, which a/n does not have; n begins at 1 here, as in (35).
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import pairs
from fedrepro.core.federation import Batches


@dataclass(frozen=True)
class SA(FedAvg):
    power: float = 1.0  # δ; A2 asks for 3/4 < δ ≤ 1; with 0 it is FedAvg
    count: str = "epochs"

    def __post_init__(self):
        super().__post_init__()
        self.require(self.power >= 0, "power", "the step must not grow")
        self.require(self.count in ("epochs", "steps"), "count", "n counts epochs or steps")

    def step(self, batches: Batches, t: int):
        return super().step(batches, t) / self.instant(batches, t) ** self.power

    def instant(self, batches: Batches, t: int) -> int:
        """n at the local step t of a round."""
        if self.count == "steps":
            return batches.round * len(batches) + t + 1
        return batches.round * batches.epochs + batches.epoch(t) + 1

    def metrics(self, problem, state, round):
        """Before the first round, who holds what; the experiments' other methods have the same federation."""
        if round == 0 and not problem.federation.train.samples.y.is_floating_point():
            yield from pairs("class_samples", problem.federation.train.class_counts())
