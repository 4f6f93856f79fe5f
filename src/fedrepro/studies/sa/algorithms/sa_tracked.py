"""Stochastic approximation on least squares, recorded for a comparison with the ODE of paper 000, eq. (6).

After every round it records the averaged iterate w̄_{nN} (31) and its time T_n = Σ_{k ≤ nN} a_k (35); before the first,
H and b of h(w) = b − Hw, the means of the clients' XᵀX/n and Xᵀy/n. The study's measures solve the ODE.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.core.algorithm import Metric, Problem, State, Trial, pairs
from fedrepro.errors import UserError
from fedrepro.studies.sa.algorithms.sa import SA


@dataclass(frozen=True)
class SATracked(SA):
    count: str = "steps"
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05, "power": 0.6}, {"lr": 0.1}), cases=("linear, full batch", "linear, mini-batch"), gradients=2
    )

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if problem.quadratics is None:
            raise UserError("sa_tracked: the ODE's right-hand side is known for the linear model only")
        if round == 0:
            yield from pairs("ode_curvature", problem.quadratics.curvature.mean(0))
            yield from pairs("ode_linear", problem.quadratics.linear.mean(0)[None])
        steps = np.arange(1, round * problem.steps + 1)
        yield Metric("ode_time", float(np.sum(self.lr * steps**-self.power)))
        yield from pairs("iterate", state["w"].flatten()[None])
