"""GIFAIR-FL under the conditions of Theorem 12, and of the second part of Theorem 15: smooth losses, convex or not.

Steps are η^(t) = lr/√(1 + t), t counting local iterations. Recorded is ‖∇H(θ̄)‖² with exact ranks r_k,
∇H = Σ_k (p_k + λ r_k/|A_{s_k}|) ∇F_k. With ranks: stale these are only measured, and devices rank by the losses they
send, as GIFAIR-FL-Per does. Where two groups' losses are equal, r_k jumps: H has a kink there, and ∇H need not vanish
at its minimum.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem, State, Trial, one_of
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, weighted_sum
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal
from fedrepro.studies.gifair.algorithms.gifair_theory import recorded
from fedrepro.studies.gifair.ranks import client_ranks


@dataclass(frozen=True)
class GIFAIRStationary(GIFAIRGlobal):
    ranks: str = one_of("exact", "stale", "exact")
    label: ClassVar[str] = "GIFAIR-FL, steps of Theorem 12"
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.1, "fraction": 0.5}, {"lr": 0.05, "fraction": 0.9}),
        gradients=6,  # five steps, and one to measure
    )

    def step(self, batches: Batches, t: int) -> float | Tensor:
        return self.lr / math.sqrt(1 + batches.round * batches.steps + t)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if round and recorded(problem, round):
            yield Metric("gradient", float(gradient(problem, state).norm()) ** 2)


def gradient(problem: Problem, state: State) -> Params:
    """∇H at the server's model."""
    w, clients = state["w"], range(len(problem.federation))
    losses, _ = problem.task.evaluate(w, problem.federation.train, list(clients))
    rank = client_ranks(losses, torch.ones_like(state["known"]), state["group"])
    weights = torch.from_numpy(problem.weights) * (1 + state["scale"] * rank)
    return weighted_sum((problem.task.gradient(w, problem.whole(k)) for k in clients), weights.tolist())
