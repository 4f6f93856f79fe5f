"""GIFAIR-FL's objective H on quadratic losses, where its minimum is known (thesis §2.3, (2.1), (2.2), (2.4)).

By Lemma 3 and the rearrangement inequality, H is the largest of Σ_k (p_k + λ r_{π(s_k)}/|A_{s_k}|) F_k over all
permutations π of the ranks. For λ < λ_max the weights are positive, so H is strongly convex, and θ* is found by
minimising the largest of d! quadratics.
"""

import itertools
from typing import NamedTuple

import numpy as np
import torch

from fedrepro.studies.gifair.ranks import client_ranks


class Objective(NamedTuple):
    """H of (2.1): F_k = ½θᵀCθ − bᵀθ + c of each device, p_k, |A_{s_k}|, s_k and λ."""

    curvature: np.ndarray
    linear: np.ndarray
    constant: np.ndarray
    p: np.ndarray
    size: np.ndarray
    group: np.ndarray
    strength: float

    def losses(self, theta: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("i,kij,j->k", theta, self.curvature, theta) - self.linear @ theta + self.constant

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """1 + λ r_k/(p_k |A_{s_k}|) [K]."""
        losses, group = torch.from_numpy(self.losses(theta)), torch.from_numpy(self.group)
        rank = client_ranks(losses, torch.ones(len(losses), dtype=torch.bool), group).numpy()
        return np.asarray(1 + self.strength * rank / (self.p * self.size))

    def penalised(self, theta: np.ndarray) -> float:
        """(2.1): the losses' mean and λ times the sum of the differences between groups."""
        return self.personalised(theta, self.losses(theta))

    def personalised(self, theta: np.ndarray, own: np.ndarray) -> float:
        """(2.4): the penalty on `own`, the devices' losses at their own models [K]."""
        means = np.array([own[self.group == i].mean() for i in range(self.group.max() + 1)])
        return float(self.p @ self.losses(theta) + self.strength * np.abs(means[:, None] - means[None]).sum() / 2)

    def weighted(self, theta: np.ndarray) -> float:
        """(2.2): the same by Lemma 3."""
        return float(self.p @ (self.coefficients(theta) * self.losses(theta)))

    def minimiser(self) -> np.ndarray:
        """θ*: the smallest upper bound u of all permutations' quadratics, over (θ, u)."""
        from scipy.optimize import minimize

        d = self.group.max() + 1
        ranks = np.array(list(itertools.permutations(range(-d + 1, d, 2))))
        weights = self.p + self.strength * ranks[:, self.group] / self.size  # [d!, K]

        def below(at: np.ndarray) -> np.ndarray:
            return np.asarray(at[-1] - weights @ self.losses(at[:-1]))

        def slope(at: np.ndarray) -> np.ndarray:
            gradients = self.curvature @ at[:-1] - self.linear
            return np.hstack([-weights @ gradients, np.ones((len(weights), 1))])

        start = self.minimiser_of_mean()
        up = np.append(np.zeros(len(start)), 1.0)
        found = minimize(
            lambda at: at[-1],
            np.append(start, self.penalised(start)),
            jac=lambda at: up,
            constraints={"type": "ineq", "fun": below, "jac": slope},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        return np.asarray(found.x[:-1])

    def minimiser_of_mean(self) -> np.ndarray:
        """argmin Σ p_k F_k; also of (2.4), where two devices of a group that move apart make up for any penalty."""
        return np.asarray(np.linalg.lstsq(np.tensordot(self.p, self.curvature, 1), self.p @ self.linear)[0])
