"""FedSGD as the Omni-Fedge authors' code (paper 001) runs it: each node starts from an initialisation of its own, sends
the gradient at its own model, and every node then subtracts the same average. The nodes' models keep their initial
differences for ever, so it is never the one model that "FedSGD" names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.algorithm import Trial
from fedrepro.core.params import weighted_sum


@dataclass(frozen=True)
class FedSGDAuthors(FedSGD):
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1, "queries": 0}))

    def init(self, problem, w):
        return {"w": w, "descent": w * 0.0}

    def message(self, state, client):
        return state["descent"]

    def init_client(self, problem, client, w):
        return problem.initial(client) if problem.initial else w

    def client_update(self, task, message, local, batches):
        return self.mean_gradient(task, local + message, batches), local

    def server_update(self, state, uploads, cohort):
        mean = weighted_sum(uploads, cohort.weights)
        return {key: value.add(mean, alpha=-self.lr) for key, value in state.items()}

    def model(self, state, local, client):
        return state["w"] if local is None else local + state["descent"]
