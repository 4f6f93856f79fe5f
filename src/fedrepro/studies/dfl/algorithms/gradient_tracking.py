"""Gradient tracking among servers (DIGing, Nedić, Olshevsky & Shi 2017, reference [17] of DFL): a rival of DFL.

Per round every server has the mean gradient G of its clients at its model X, updates its estimate of the gradient of
all, Y ← A·Y + G − G_before (at first Y = G), and moves X ← A·X − γY. The mean of Y is always the mean gradient, so
the only fixed point is the minimiser of all, whatever the graph. G is (X − Z)/γ, Z the averages of the clients' models
after their local steps; the cited algorithm takes one. One server is FedAvg. Two vectors go over each link.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.core.algorithm import Cohort, State, Trial
from fedrepro.core.params import Uploads
from fedrepro.studies.dfl.servers import ServerMethod


@dataclass(frozen=True)
class GradientTracking(ServerMethod):
    label: ClassVar[str] = "gradient tracking"
    trial: ClassVar[Trial] = Trial(({"servers": 2, "gamma": 0.004}, {"servers": 3, "gamma": 0.008, "graph": "path"}))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        sent, returned = self.gathered(state, uploads, cohort)
        a, gradient = self.mixing().to(sent), (sent - returned.mean(1)) / self.gamma
        tracked = a @ state["tracked"] + gradient - state["gradient"] if "tracked" in state else gradient
        servers = self.unflattened(state, a @ sent - self.gamma * tracked)
        return {**state, "servers": servers, "tracked": tracked, "gradient": gradient}

    def load(self, size: int) -> float:
        return 2 * size + 4 * self.degree()
