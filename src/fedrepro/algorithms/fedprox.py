"""FedProx (Li et al. 2020, Algorithm 2): FedAvg whose clients minimise F_k(w) + μ/2 ‖w − w_server‖²."""

from dataclasses import dataclass
from typing import ClassVar

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Trial, not_negative
from fedrepro.core.federation import Batch
from fedrepro.core.params import Params
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedProx(FedAvg):
    mu: float = not_negative(0.25, "the proximal weight must not be negative")
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "mu": 0.5}, {"lr": 0.1, "mu": 2.0}))

    def direction(self, task: Task, w: Params, batch: Batch, w_server: Params) -> Params:
        return task.gradient(w, batch).add(w - w_server, alpha=self.mu)
