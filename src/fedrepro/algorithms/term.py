"""TERM between devices (Li, Beirami, Sanjabi, Smith 2021, tilted empirical risk minimisation): 1/t log Σ p_k e^{tF_k}.

The gradient weighs device k by e^{tF_k}/Σ_j p_j e^{tF_j}, so a device with a large loss counts more; t → 0 is FedAvg.
The sum is known for the sampled devices only and tracked by E ← ½E + ½ Σ_{k∈S} p_k e^{tF_k}, as in the authors' code
(kept as a logarithm). The server moves by Σ_k p_k e^{tF_k}/E · (w_k − w). Deviations from that code: it starts E at 0,
which doubles the first step, and divides twice by the number of devices; here E starts at the first round's sum, and
the weights are those of the formula.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Problem, State, Trial, positive
from fedrepro.core.params import Params, Uploads, stacked, towards


@dataclass(frozen=True)
class TERM(FedAvg):
    sends_loss: ClassVar[bool] = True
    t: float = positive(1.0, "the tilt must be positive")

    label: ClassVar[str] = "TERM"
    server_only: ClassVar[frozenset[str]] = frozenset(["t"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "t": 0.1}, {"lr": 0.1, "t": 0.05}))

    def init(self, problem: Problem, w: Params) -> State:
        return {"w": w, "log_mean": None}

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        models, losses = stacked(uploads)
        state, losses = self.tilted(state, losses, cohort)
        log_weights = torch.from_numpy(cohort.weights).log() + self.t * losses
        now = float(log_weights.logsumexp(0))
        before = state["log_mean"]
        log_mean = now if before is None else float(np.logaddexp(before, now)) - math.log(2)
        return {**state, "w": towards(state["w"], models, (log_weights - log_mean).exp()), "log_mean": log_mean}

    def tilted(self, state: State, losses: Tensor, cohort: Cohort) -> tuple[State, Tensor]:
        """The losses to tilt: each device's own."""
        return state, losses
