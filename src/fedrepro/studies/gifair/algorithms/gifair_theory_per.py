"""GIFAIR-FL-Per under the conditions of Theorem 15, for quadratic losses: `gifair_theory` with Per's own ranks.

The theorem bounds H(θ̄, {θ_k}) − H* of (2.4). It leaves H* open: "H(θ*, {θ_k}) such that Σ p_k θ_k = θ*". Steps tend
to 0, so all θ_k tend to θ̄ and H to (2.1): `gap` is the distance from the least value of (2.1), in absolute terms, as H
with models of their own may lie below it. `gap_own` is the distance from the least value of (2.4) itself, that of
Σ p_k F_k. Ranks are exact here by definition: those of the losses that devices send.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.core.algorithm import Metric, State, Trial, one_of
from fedrepro.studies.gifair.algorithms.gifair_theory import GIFAIRTheory
from fedrepro.studies.gifair.objective import Objective


@dataclass(frozen=True)
class GIFAIRTheoryPer(GIFAIRTheory):
    ranks: str = one_of("stale", "stale")
    label: ClassVar[str] = "GIFAIR-FL-Per, steps of Theorem 15"
    trial: ClassVar[Trial] = Trial(
        ({"fraction": 0.5, "beta": 2.0, "gamma": 40.0}, {"fraction": 0.2, "beta": 3.0, "gamma": 60.0}),
        cases=("linear, full batch",),
        gradients=2,
    )

    def gaps(self, objective: Objective, state: State, theta: np.ndarray, gap: float) -> Iterator[Metric]:
        if not state["known"].all():
            return
        value = objective.personalised(theta, state["losses"].numpy())
        least = objective.minimiser_of_mean()
        yield Metric("gap", abs(value - objective.penalised(state["best"].numpy())))
        yield Metric("gap_own", value - float(objective.p @ objective.losses(least)))
