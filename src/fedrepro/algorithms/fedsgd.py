"""FedSGD (McMahan et al. 2017, §2): clients send one gradient, the server takes the step. With several batches a client
sends the mean gradient at the server's model, over all of them or the first `queries`."""

import functools
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.core.algorithm import Algorithm, Cohort, State, Trial, not_negative, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedSGD(Algorithm):
    lr: float = positive(0.1, "the step must be positive")
    queries: int = not_negative(0, "must not be negative (0: all batches)")
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1}))

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        return self.mean_gradient(task, message, batches), local

    def mean_gradient(self, task: Task, w: Params, batches: Batches) -> Params:
        batches = batches.head(self.queries) if self.queries else batches
        gradients = (task.gradient(w, batch) for batch in batches)
        return functools.reduce(operator.add, gradients) * (1 / len(batches))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        return {**state, "w": state["w"].add(weighted_sum(uploads, cohort.weights), alpha=-self.lr)}
