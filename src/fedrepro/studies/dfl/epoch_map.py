"""DFL's epoch on least squares as a linear map, and what follows from it without running: limit, and epochs until then.

With quadratics ½wᵀH_k w − b_kᵀw, T_C steps at client k are w ← P_k w + (I − P_k) H_k⁻¹ b_k with P_k = (I − γH_k)^T_C.
A server averages those of its clients, P̄_i and q̄_i, and consensus multiplies by A^T_S: on the servers' models as one
vector W [M·d] an epoch is W ← S(P̄W + q̄), with P̄ block-diagonal and S = A^T_S ⊗ I. The limit solves (I − SP̄)W = Sq̄.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fedrepro.core.algorithm import Problem
from fedrepro.studies.dfl.consensus import furthest

SETTLED = 1e-3  # of the starting distance: too small to see in a printed figure
INDISTINCT = 1e-2  # of ‖w*‖: curves this close are one line in a printed figure
MOST_EPOCHS = 50_000


@dataclass(frozen=True)
class EpochMap:
    """local [M·d, M·d] and shift [M·d]: W ← mixed(local·W + shift); mixed [M·d, M·d]."""

    local: Tensor
    shift: Tensor
    mixed: Tensor
    servers: int
    step: float
    steps: int

    def limit(self) -> Tensor:
        """The servers' models [M, d] that an epoch leaves as they are."""
        eye = torch.eye(len(self.shift)).to(self.shift)
        found: Tensor = torch.linalg.solve(eye - self.mixed @ self.local, self.mixed @ self.shift)
        return found.view(self.servers, -1)

    def facts(self, problem: Problem) -> dict[str, float]:
        """Distances at the limit, its largest client gradient, and the largest contraction over Lemma 2's λ."""
        q, minimiser, w = problem.quadratics, problem.minimiser, self.limit()
        assert q is not None
        assert minimiser is not None
        gradients = q.gradients(w.repeat_interleave(len(q.linear) // self.servers, 0))
        facts = {
            "limit_distance": furthest(w, minimiser),
            "limit_mean": (w.mean(0) - minimiser).norm().item(),
            "limit_gap": furthest(w, w.mean(0)),
            "limit_theta": gradients.norm(dim=1).max().item(),
            "contraction_ratio": max(contraction_ratio(q.curvature, s) for s in (self.step, self.step * self.steps)),
        }
        if "w" in problem.federation.facts:
            facts["limit_true"] = furthest(w, torch.as_tensor(problem.federation.facts["w"]).to(w))
        return facts

    def epochs(self, problem: Problem) -> dict[str, float]:
        """Epochs from W = 0 until the servers' mean has settled, and until their averages before consensus agree, both
        for good; infinite if never, or beyond MOST_EPOCHS."""
        truth = torch.as_tensor(problem.federation.facts["w"])
        limit = self.limit().flatten()
        settled, agreed = SETTLED * limit.view(self.servers, -1).mean(0).norm(), INDISTINCT * truth.norm()
        w, late, apart, p = torch.zeros_like(limit), 0, 0, 0
        near = 1e-3 * min(float(settled), float(agreed))  # from here on nothing can be broken again
        while (w - limit).abs().max() > near and p < MOST_EPOCHS:
            before = self.local @ w + self.shift
            w, p = self.mixed @ before, p + 1
            means, averages = (w - limit).view(self.servers, -1).mean(0), before.view(self.servers, -1)
            late = p if means.norm() > settled else late
            apart = p if furthest(averages, averages.mean(0)) > agreed else apart
        ends = {"settles": late, "agrees": apart}
        return {name: math.inf if last == p or p == MOST_EPOCHS else last + 1 for name, last in ends.items()}


def epoch_map(problem: Problem, servers: int, gamma: float, consensus: Tensor) -> EpochMap:
    """`consensus` is A^T_S."""
    q = problem.quadratics
    assert q is not None
    clients, d = q.linear.shape
    eye = torch.eye(d).to(q.linear)
    powers = torch.linalg.matrix_power(eye - gamma * q.curvature, problem.steps)  # P_k
    ends = torch.linalg.solve(q.curvature, q.linear)
    shifts = ends - (powers @ ends[..., None])[..., 0]
    size = clients // servers
    local = torch.block_diag(*powers.view(servers, size, d, d).mean(1))
    mixed = torch.kron(consensus.to(eye), eye)
    return EpochMap(local, shifts.view(servers, size, d).mean(1).flatten(), mixed, servers, gamma, problem.steps)


def contraction_ratio(curvature: Tensor, eta: float) -> float:
    """‖I − ηH‖ over λ = √(1 − ημ), the largest of all clients: Lemma 2 says at most 1 for η ≤ 1/L."""
    values = torch.linalg.eigvalsh(curvature)
    return float((1 - eta * values).abs().max() / math.sqrt(1 - eta * float(values.min())))
