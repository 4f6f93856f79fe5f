"""AFL (Mohri, Sivek, Suresh 2019, agnostic federated learning): the worst mixture of devices, min_w max_λ Σ λ_k F_k(w).

The server ascends in λ, λ_k ← λ_k + γ F_k(w), projected onto the simplex, and the devices descend in w, weighed by λ.

Choices, which the thesis leaves open: FedAvg's local steps replace the gradient. If devices are sampled, the average is
over these with λ scaled to sum to 1 (FedAvg's weights if all of their λ are zero), and only their λ ascends. λ starts
at p_k. The last iterate is returned; Mohri et al. prove their rate for the average.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial, not_negative
from fedrepro.core.params import Params, Uploads, stacked, towards


@dataclass(frozen=True)
class AFL(FedAvg):
    sends_loss: ClassVar[bool] = True
    gamma: float = not_negative(0.1, "the step of λ must not be negative")

    label: ClassVar[str] = "AFL"
    server_only: ClassVar[frozenset[str]] = frozenset(["gamma"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "gamma": 0.1}, {"lr": 0.1, "gamma": 0.01}))

    def init(self, problem: Problem, w: Params) -> State:
        return {"w": w, "lambda": torch.from_numpy(problem.weights).double()}

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        models, losses = stacked(uploads)
        mixture, who = state["lambda"].clone(), torch.from_numpy(cohort.clients)
        total = float(mixture[who].sum())
        shares = mixture[who] / total if total > 0 else torch.from_numpy(cohort.weights)
        mixture[who] += self.gamma * losses
        return {**state, "w": towards(state["w"], models, shares), "lambda": onto_simplex(mixture)}

    def metrics(self, problem: Problem, state: State, round: int) -> Iterable[Metric]:
        yield Metric("largest_lambda", float(state["lambda"].max()))
        yield Metric("devices_with_lambda", int((state["lambda"] > 0).sum()))


def onto_simplex(v: Tensor) -> Tensor:
    """The point of {λ ≥ 0, Σ λ = 1} nearest to v [K]: v less one number, cut at 0."""
    ordered = v.sort(descending=True).values
    excess = (ordered.cumsum(0) - 1) / torch.arange(1, len(v) + 1)
    last = int((ordered > excess).nonzero().max())
    return (v - excess[last]).clamp_min(0)
