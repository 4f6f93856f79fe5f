"""Federated SGLD ("SGLD for noise-intrinsic federated learning", ICLR 2021 submission, Algorithms 1 and 2).

FedPD whose nodes return an average of their noisy iterates, as an estimate of the mean of exp(−L_i): from the sample of
step q = Q₀ on, x̂ ← σ·x̂ + (1 − σ)·x. Steps after Q₀ are fixed (`decay` 0) or decrease as (q − Q₀)^(−⅓): §3.2 has both,
the box the latter. `plain_mean` takes the plain mean of the samples after burn-in instead, as "Monte-Carlo estimation"
in the text suggests. With β = 0, no clipping, σ = 0 and fixed steps it is FedPD.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedrepro.core.algorithm import Trial, limited
from fedrepro.studies.sgld.algorithms.fedpd_noisy import FedPDNoisy


@dataclass(frozen=True)
class FedSGLD(FedPDNoisy):
    average: float = limited(0.9, lambda v: 0 <= v < 1, "the weight σ must lie in [0, 1)")  # σ
    plain_mean: bool = False
    trial: ClassVar[Trial] = Trial(
        (
            {"lr": 0.05, "beta": 0.01, "clip": 5.0, "burn_in": 1, "decay": 1 / 3},
            {"lr": 0.1, "beta": 0.02, "clip": 2.0, "burn_in": 1, "average": 0.5},
        )
    )

    def collect(self, found: Tensor, x: Tensor, q: int) -> Tensor:
        if q <= self.burn_in:
            return x
        weight = 1 - 1 / (q - self.burn_in + 1) if self.plain_mean else self.average
        return weight * found + (1 - weight) * x
