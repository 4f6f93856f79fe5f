"""Decentralised SGD (Lian et al. 2017, arXiv 1705.09056, Algorithm 1) among servers: a rival of DFL, not in its paper.

Per round each server mixes its neighbours' models and adds its own clients' mean step: X ← A·X + (Z − X), where Z are
the averages of the clients' models after their local steps. With one local step, Z − X = −γ∇F(X): the cited algorithm.
Differs from DFL with T_C = T_S = 1 only in what is mixed (DFL: A·Z). One server is FedAvg.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.core.algorithm import Cohort, State, Trial
from fedrepro.core.params import Uploads
from fedrepro.studies.dfl.servers import ServerMethod


@dataclass(frozen=True)
class DecentralisedSGD(ServerMethod):
    label: ClassVar[str] = "decentralised SGD"
    trial: ClassVar[Trial] = Trial(({"servers": 2, "gamma": 0.004}, {"servers": 3, "gamma": 0.008, "graph": "path"}))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        sent, returned = self.gathered(state, uploads, cohort)
        return {**state, "servers": self.unflattened(state, self.mixing().to(sent) @ sent + returned.mean(1) - sent)}

    def load(self, size: int) -> float:
        return 2 * size + 2 * self.degree()
