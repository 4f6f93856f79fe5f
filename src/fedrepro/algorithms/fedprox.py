"""FedProx (Li et al. 2020, Algorithm 2): FedAvg whose clients minimise F_k(w) + μ/2 ‖w − w_server‖²."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Trial


@dataclass(frozen=True)
class FedProx(FedAvg):
    mu: float = 0.25
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "mu": 0.5}, {"lr": 0.1, "mu": 2.0}))

    def __post_init__(self):
        super().__post_init__()
        self.require(self.mu >= 0, "mu", "the proximal weight must not be negative")

    def direction(self, task, w, batch, w_server):
        return task.gradient(w, batch).add(w - w_server, alpha=self.mu)
