"""The runs that a job advances together: who takes part, what is common to all, and the state of each."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Cohort, Problem, State, Traffic
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.core.params import Params


@dataclass(frozen=True)
class Participation:
    """The clients of a round: all, or `clients` of them drawn without replacement.
    sampling: `weight` draws with probability p_k and averages plainly, `uniform` draws evenly and weighs by K/|S| · p_k
    (thesis, Remark 4). weights: p_k is the share of the samples (`size`) or 1/K (`uniform`).
    """

    clients: int | None = None
    sampling: str = "uniform"
    weights: str = "size"

    def shares(self, federation: Federation) -> np.ndarray:
        """p_k [K]."""
        sizes = federation.train.sizes if self.weights == "size" else np.ones(len(federation))
        shares: np.ndarray = sizes / sizes.sum()
        return shares

    def draw(self, round: int, p: np.ndarray, experiment: str, seed: int) -> Cohort:
        total = len(p)
        if self.clients is None or self.clients >= total:
            return Cohort(round, np.arange(total), p)
        rng = streams.generator(experiment, seed, "clients", round)
        drawn = rng.choice(total, self.clients, replace=False, p=p if self.sampling == "weight" else None)
        drawn.sort()
        if self.sampling == "weight":
            return Cohort(round, drawn, np.full(self.clients, 1 / self.clients))
        return Cohort(round, drawn, p[drawn] * total / self.clients)


@dataclass(frozen=True)
class Plan:
    """Common to all replicates of a job."""

    experiment: str
    rounds: int
    work: LocalWork
    participation: Participation = Participation()
    evaluate_every: int = 1
    client_metrics: str = "last"  # never | last | always: rounds that record each client's own numbers


@dataclass
class Replicate:
    """One run: a setting of the algorithm, a seed, its problem and its state."""

    setting: str
    seed: int
    algorithm: Algorithm
    problem: Problem
    w: Params
    state: State = field(default_factory=dict)
    local: dict[int, Any] = field(default_factory=dict)
    diverged: int | None = None
    traffic: Traffic = field(default_factory=Traffic)  # of the last round

    @property
    def run(self) -> tuple[str, int]:
        return self.setting, self.seed

    def local_of(self, client: int) -> Any:
        """A client's own state: kept from its last round, or initial."""
        kept = client in self.local
        return self.local[client] if kept else self.algorithm.init_client(self.problem, client, self.w)
