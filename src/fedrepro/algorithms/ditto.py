"""Ditto (Li et al. 2021, Algorithm 1): besides FedAvg's model w, every client keeps its own model v near it.

On the same batches, both from the server's w: FedAvg's local steps, which are uploaded, and

    v ← v − lr (∇F_k(v) + λ (v − w)),

which stays at the client and is its model. λ = 0 is local training, a large λ ties v to w. The thesis (§3.6.2) trains w
first and v afterwards; here both are trained together, as in Ditto's box and code, with one step length. A client that
is not sampled keeps its v, which begins at the initial model; one that was never sampled uses the server's.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Problem, State, Trial, not_negative
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task


@dataclass(frozen=True)
class Ditto(FedAvg):
    label: ClassVar[str] = "Ditto"
    strength: float = not_negative(0.1, "the weight λ must not be negative")  # λ
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "strength": 0.5}, {"lr": 0.1, "strength": 0.1}), gradients=10)

    def init(self, problem: Problem, w: Params) -> State:
        return {**super().init(problem, w), "seen": torch.zeros(len(problem.federation), dtype=torch.bool)}

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return w

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        upload, _ = super().client_update(task, message, None, batches)
        v = local.clone()
        for t, batch in enumerate(batches):
            g = task.gradient(v, batch).add(v - message, alpha=self.strength)
            v = v.descend(g, self.step(batches, t))
        return upload, v

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        seen = state["seen"].clone()
        seen[cohort.clients] = True
        return {**super().server_update(state, uploads, cohort), "seen": seen}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["w"] if local is None or not state["seen"][client] else local
