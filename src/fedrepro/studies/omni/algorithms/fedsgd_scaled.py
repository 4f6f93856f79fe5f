"""FedSGD at the step length that Omni-Fedge takes (paper 001), and no other difference from FedSGD.

Omni-Fedge goes against η/N Σ_l Σ_j ω_jl ∇L_l(θ^(j)) with ω = 1/L. If all heads were one, that is η · Σ_l ω_l times a
weighted mean of the nodes' gradients. Here the mean is plain and the step is η · Σ_l 1/L_l: what it gains over FedSGD
is due to the step's length, not to weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedSGDScaled(FedSGD):
    floor: float = positive(1e-3, "must be positive, or the step has no bound")
    trial: ClassVar[Trial] = Trial(({"lr": 0.01}, {"lr": 0.02}))

    def init(self, problem: Problem, w: Params) -> State:
        return {"w": w, "step": 0.0}

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        loss = task.loss(message, next(iter(batches))).detach()
        return (self.mean_gradient(task, message, batches), loss), local

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        gradients, losses = zip(*uploads, strict=True)
        found = torch.stack(losses).to("cpu", torch.float64)
        step = self.lr * (1 / found.clamp_min(self.floor)).sum().item()
        return {"w": state["w"].add(weighted_sum(gradients, cohort.weights), alpha=-step), "step": step}

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if round:
            yield Metric("step_length", state["step"])
