"""Hierarchical FedAvg (Liu et al. 2020, reference [12] of DFL, Algorithm 1): a rival of DFL, a cloud above servers.

Per round every server averages its clients' models after their local steps; every `cloud_every` rounds (κ₂) the cloud
averages the servers' models and sends the result back. There is no graph. κ₂ = 1 is FedAvg over all clients, as is a
single server. The cloud's own load, 2M vectors every κ₂ rounds, is below that of a server with more clients than that.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from fedrepro.core.algorithm import Cohort, State, Trial, limited
from fedrepro.core.params import Uploads
from fedrepro.studies.dfl.servers import ServerMethod


@dataclass(frozen=True)
class HierarchicalFedAvg(ServerMethod):
    graph: str = field(default="ring", init=False)  # not used
    cloud_every: int = limited(1, lambda v: v >= 1, "κ₂ must be at least 1")  # κ₂

    server_only = ServerMethod.server_only | {"cloud_every"}
    label: ClassVar[str] = "hierarchical FedAvg"
    trial: ClassVar[Trial] = Trial(({"servers": 2, "gamma": 0.004}, {"servers": 3, "gamma": 0.008, "cloud_every": 2}))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        averaged = self.gathered(state, uploads, cohort)[1].mean(1)
        if (cohort.round + 1) % self.cloud_every == 0:
            averaged = averaged.mean(0).repeat(self.servers, 1)
        return {**state, "servers": self.unflattened(state, averaged)}

    def load(self, size: int) -> float:
        return max(2 * size + 2 / self.cloud_every, 2 * self.servers / self.cloud_every)
