"""Local training: every client runs SGD on its own data and nothing is shared. The server's model, the weighted average
of the clients' last ones, is for reference only."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Problem, State, Trial
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task


@dataclass(frozen=True)
class Local(FedAvg):
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1}))

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return w

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        w, _ = super().client_update(task, local, None, batches)
        return w, w

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["w"] if local is None else local
