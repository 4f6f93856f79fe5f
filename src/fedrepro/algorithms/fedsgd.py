"""FedSGD (McMahan et al. 2017, §2): clients send one gradient, the server takes the step.

A client that is given several batches sends the mean of their gradients at the server's model.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedrepro.core.algorithm import Algorithm
from fedrepro.core.params import weighted_sum


@dataclass(frozen=True)
class FedSGD(Algorithm):
    lr: float = 0.1

    def __post_init__(self):
        self.require(self.lr > 0, "lr", "the step must be positive")

    def client_update(self, task, message, local, batches):
        gradients = (task.gradient(message, batch) for batch in batches)
        total = next(gradients)
        for g in gradients:
            total = total + g
        return total * (1 / len(batches)), local

    def server_update(self, state, uploads, cohort):
        return {**state, "w": state["w"].add(weighted_sum(uploads, cohort.weights), alpha=-self.lr)}
