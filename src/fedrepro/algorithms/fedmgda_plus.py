"""FedMGDA+ (Hu, Shaloudegi, Zhang, Yu 2022, Algorithm 1): a step that is a descent direction for every device.

The devices' updates are scaled to length one, u_k, and the server goes along d = Σ λ_k u_k with

    λ = argmin ‖Σ λ_k u_k‖²  subject to  λ ≥ 0, Σ λ_k = 1, |λ_k − w_k| ≤ epsilon,

where w_k are FedAvg's weights (the paper's 1/n), by scipy's sequential quadratic programming. epsilon = 0 keeps
FedAvg's weights. Choice: the length of the step, which the paper tunes, is server_lr times the mean length of the
updates, so that equal lengths and epsilon = 0 give FedAvg.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, State, Trial, limited, positive
from fedrepro.core.params import Uploads, towards

PRECISION = 1e-14  # of ½‖d‖², which is at most ½


@dataclass(frozen=True)
class FedMGDAPlus(FedAvg):
    epsilon: float = limited(1.0, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    server_lr: float = positive(1.0, "the step must be positive")

    label: ClassVar[str] = "FedMGDA+"
    server_only: ClassVar[frozenset[str]] = frozenset(["epsilon", "server_lr"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1, "epsilon": 0.2}))

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        models = uploads.stack()
        updates = (models.flatten(stacked=True) - state["w"].flatten()).to("cpu", torch.float64)
        lengths = updates.norm(dim=1)
        inverse = torch.where(lengths > 0, 1 / lengths.clamp_min(torch.finfo(torch.float64).tiny), 0)
        units = updates * inverse[:, None]
        centre = cohort.weights / cohort.weights.sum()
        found = torch.from_numpy(min_norm((units @ units.T).numpy(), centre, self.epsilon))
        shares = self.server_lr * lengths.mean() * found * inverse
        return {**state, "w": towards(state["w"], models, shares)}


def min_norm(gram: np.ndarray, centre: np.ndarray, epsilon: float) -> np.ndarray:
    """argmin λᵀGλ on the simplex with |λ − centre| ≤ epsilon: [n]."""
    from scipy.optimize import LinearConstraint, minimize  # here: it takes a second to import

    if len(gram) == 1 or epsilon == 0:
        return centre
    bounds = list(zip(np.maximum(0, centre - epsilon), np.minimum(1, centre + epsilon), strict=True))
    found = minimize(
        lambda x: (0.5 * x @ gram @ x, gram @ x),
        centre,
        jac=True,
        method="SLSQP",
        bounds=bounds,
        constraints=LinearConstraint(np.ones((1, len(gram))), 1, 1),
        options={"ftol": PRECISION, "maxiter": 1000},
    )
    return found.x
