"""q-FFL, solved by q-FedAvg (Li, Sanjabi, Beirami, Smith 2020, Algorithm 2): devices with a large loss weigh more.

With L = 1/η for the Lipschitz constant, and F_k at the server's model,

    Δw_k = L (w − w_k),  Δ_k = F_k^q Δw_k,  h_k = q F_k^{q−1} ‖Δw_k‖² + L F_k^q,  w ← w − Σ Δ_k / Σ h_k.

q = 0 is FedAvg. The sums are weighted like FedAvg's average (plain if clients are drawn by p_k). The authors' code adds
1e-10 to the losses, and so does this.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, State, Trial, not_negative
from fedrepro.core.params import Uploads, towards

SMALLEST = 1e-10


@dataclass(frozen=True)
class QFFL(FedAvg):
    sends_loss: ClassVar[bool] = True
    q: float = not_negative(1.0)

    label: ClassVar[str] = "q-FFL"
    server_only: ClassVar[frozenset[str]] = frozenset(["q"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "q": 1.0}, {"lr": 0.1, "q": 0.1}))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        models, at_server = uploads.stack()
        lipschitz = 1 / self.rate(cohort.round)
        distances = (state["w"].flatten() - models.flatten(stacked=True)).square().sum(1)
        losses, moved = torch.stack([at_server, distances]).to("cpu", torch.float64)  # one copy from a GPU
        f = losses + SMALLEST
        p = torch.from_numpy(cohort.weights)
        h = self.q * f ** (self.q - 1) * lipschitz**2 * moved + lipschitz * f**self.q
        return {**state, "w": towards(state["w"], models, p * lipschitz * f**self.q / (p * h).sum())}
