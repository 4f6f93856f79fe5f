"""FedSGD as the Omni-Fedge authors' code (paper 001) runs it: each node has its own initialisation, sends the gradient
at its own model, and every node then subtracts the same average. The initial differences of the nodes' models remain,
so there never is the one model of FedSGD.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.algorithm import Cohort, Problem, State, Trial
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedSGDAuthors(FedSGD):
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1, "queries": 0}))

    def init(self, problem: Problem, w: Params) -> State:
        return {"w": w, "descent": w * 0.0}

    def message(self, state: State, client: int) -> Any:
        return state["descent"]

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return problem.initial(client) if problem.initial else w

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        return self.mean_gradient(task, local + message, batches), local

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        mean = weighted_sum(uploads, cohort.weights)
        return {key: value.add(mean, alpha=-self.lr) for key, value in state.items()}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["w"] if local is None else local + state["descent"]
