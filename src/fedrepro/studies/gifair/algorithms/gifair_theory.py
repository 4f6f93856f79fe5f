"""GIFAIR-FL-Global under the conditions of Theorems 8 and 10, measured beside their bound; for quadratic losses.

Ranks are exact, as the proofs need. Steps are η^(t) = β/(γ + t), t counting local iterations, with β = 2/(εμ) and
γ = 8Lβ, so that η ≤ 1/(8L); ε = (1 − λ/λ_max)/K is the constant that the proof of Theorem 38 calls ε. The bound is

    (L/2)/(γ + T) · (4(ξ + τ′)/(ε²μ²) + (γ + 1)‖θ^(0) − θ*‖²),
    ξ = 8(E − 1)²G² + 4LΓ_K + 2Γ_max/η^(T),   τ′ = 4G²E²/|S| under partial participation, else 0,

without the term of gradient noise (batches are full). G² is the largest ‖∇F_k‖² at θ^(0) and at θ*.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem, State, Trial, one_of, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal, held
from fedrepro.studies.gifair.objective import Objective

POINTS = 400  # of a curve
CONVEX = 1e-9  # a loss with μ/L below it is not strongly convex


@dataclass(frozen=True)
class GIFAIRTheory(GIFAIRGlobal):
    ranks: str = one_of("exact", "exact")
    beta: float | None = positive(None)  # None: by the theorem
    gamma: float | None = positive(None)
    sampled: int = 0  # |S|; 0: all devices take part
    label: ClassVar[str] = "GIFAIR-FL-Global, steps of Theorem 8"
    trial: ClassVar[Trial] = Trial(
        ({"fraction": 0.5, "beta": 2.0, "gamma": 40.0}, {"fraction": 0.2, "beta": 3.0, "gamma": 60.0}),
        cases=("linear, full batch",),
        gradients=2,
    )

    def resolve(self, problem: Problem) -> Self:
        mine = super().resolve(problem)
        if self.beta is not None and self.gamma is not None:
            return mine
        assert problem.quadratics is not None, "the theory is measured on quadratic losses"
        low, high = problem.quadratics.spectrum()
        self.require(low > CONVEX * high, "beta", "must be given where a device's loss is not strongly convex")
        beta = 2 / (self.epsilon(problem) * low)
        return replace(mine, beta=beta, gamma=8 * high * beta)

    def epsilon(self, problem: Problem) -> float:
        return (1 - self.fraction) / len(problem.federation)

    def step(self, batches: Batches, t: int) -> float | Tensor:
        assert self.beta is not None
        assert self.gamma is not None
        return self.beta / (self.gamma + batches.round * batches.steps + t)

    def init(self, problem: Problem, w: Params) -> State:
        objective = self.objective(problem)
        best = objective.minimiser()
        return {**super().init(problem, w), "start": w["w"].clone(), "best": torch.from_numpy(best)}

    def objective(self, problem: Problem) -> Objective:
        assert problem.quadratics is not None
        assert self.strength is not None
        _, group = problem.groups
        p = problem.weights
        curvature, linear, constant = (part.double().cpu().numpy() for part in problem.quadratics)
        size = held(problem).numpy() / p
        return Objective(curvature, linear, constant, p, size, group.numpy(), self.strength)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if not recorded(problem, round):
            return
        if round == 0 and self.gamma is not None:
            yield Metric("offset", self.gamma / problem.steps)
        objective, best = self.objective(problem), state["best"].numpy()
        theta = state["w"]["w"].double().cpu().numpy()
        both = objective.penalised(theta), objective.weighted(theta)
        yield from self.gaps(objective, state, theta, both[0] - objective.penalised(best))
        yield Metric("lemma_3", abs(both[0] - both[1]))
        assert problem.quadratics is not None
        low, high = problem.quadratics.spectrum()
        if low > CONVEX * high:
            yield Metric("bound", self.bound(problem, state, round * problem.steps))

    def gaps(self, objective: Objective, state: State, theta: np.ndarray, gap: float) -> Iterator[Metric]:
        """The distance of H from its least value, given that of (2.1)."""
        yield Metric("gap", gap)

    def bound(self, problem: Problem, state: State, iterations: int) -> float:
        """The right side of Theorem 8 or 10 after T iterations."""
        assert self.beta is not None
        assert self.gamma is not None
        objective, best, start = self.objective(problem), state["best"].numpy(), state["start"].double().cpu().numpy()
        assert problem.quadratics is not None
        low, high = problem.quadratics.spectrum()
        gradients = [objective.curvature @ at - objective.linear for at in (start, best)]
        G2 = max(float((g**2).sum(axis=1).max()) for g in gradients)
        alone = np.linalg.solve(objective.curvature, objective.linear[..., None])[..., 0]
        least = objective.coefficients(best) * [objective.losses(own)[k] for k, own in enumerate(alone)]  # H_k*
        gaps = objective.penalised(best) - least
        step = self.beta / (self.gamma + iterations)
        xi = 8 * (problem.steps - 1) ** 2 * G2 + 4 * high * objective.p @ gaps + 2 * objective.p @ np.abs(gaps) / step
        if self.sampled:
            xi += 4 * G2 * problem.steps**2 / self.sampled
        distance = float(((start - best) ** 2).sum())
        epsilon = self.epsilon(problem)
        return float(
            high / 2 / (self.gamma + iterations) * (4 * xi / (epsilon * low) ** 2 + (self.gamma + 1) * distance)
        )


def recorded(problem: Problem, round: int) -> bool:
    """Whether the curves have a point at this round."""
    return round % max(1, problem.rounds // POINTS) == 0
