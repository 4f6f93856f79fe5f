"""Stochastic approximation (paper 000, eq. (3)): FedAvg whose step tapers, a_n = a/n^δ.

The meaning of n gives the paper's schedules (§V-D, both with a = 0.1, δ = 1). `count: epochs` is 0.1/n with
n = 1, 2, … over the epochs of the run, constant within an epoch: the paper does not define n, but its Fig. 1 counts
epochs. `count: rounds` is 0.1/(⌊n/N⌋ + 1) with n = 0, 1, …: the step of
a round is 0.1 over its number. `count: steps` counts gradient steps, as in eq. (3). With δ = 0 it is FedAvg, and with
the proximal term, μ > 0, FedProx: the paper's four methods are four settings.

Deviations: eq. (1) and (3) take no gradient step when n is a multiple of N, (33) takes N steps per round; this follows
(33). (33) begins at a_0, which a/n does not have; n begins at 1 here, as in (35).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.algorithms.fedprox import FedProx
from fedrepro.core.algorithm import Metric, Problem, State, Trial, limited, not_negative, pairs
from fedrepro.core.federation import Batches


@dataclass(frozen=True)
class SA(FedProx):
    mu: float = 0.0
    power: float = not_negative(1.0, "the step must not grow")  # δ; A2 asks for 3/4 < δ ≤ 1
    count: str = limited(
        "epochs", lambda v: v in ("epochs", "rounds", "steps"), "n counts one of epochs, rounds, steps"
    )
    trial: ClassVar[Trial] = Trial(({"lr": 0.1}, {"lr": 0.05, "mu": 0.5, "power": 0.76, "count": "steps"}))

    def step(self, batches: Batches, t: int) -> Any:
        return super().step(batches, t) / self.instant(batches, t) ** self.power

    def instant(self, batches: Batches, t: int) -> int:
        """n at the local step t of a round."""
        if self.count == "rounds":
            return batches.round + 1
        if self.count == "steps":
            return batches.round * len(batches) + t + 1
        return batches.round * batches.epochs + batches.epoch(t) + 1

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        """Before the first round, the samples of each class at each client."""
        if round == 0 and not problem.federation.train.samples.y.is_floating_point():
            yield from pairs("class_samples", problem.federation.train.class_counts())
