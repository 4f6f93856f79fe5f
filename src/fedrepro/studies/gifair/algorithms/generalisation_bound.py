"""Theorem 37 (thesis App. A.3.2) on one hypothesis, where the weighted Rademacher complexity is 0.

Each sample's loss is 0 or M = 1 with probability ½, so the expected loss is ½ on every device. Over `draws` of the
devices' samples, with the sizes and groups of the federation: the share in which the expected loss exceeds

    L̂ + √(½ Σ_k n_k (p_k M/N_k + λ d(d − 1)M/2)² log(1/δ)) + λ d(d − 1)M/2,

with n_k = 1 as printed, and n_k = N_k as McDiarmid's inequality has it, which sums over samples. L̂ is (2.1) on the
sample. The theorem allows a share of δ. Draws come from a fixed stream.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.core.algorithm import Algorithm, Metric, Problem, State, Trial, limited, positive
from fedrepro.studies.gifair.algorithms.gifair_global import lambda_max


@dataclass(frozen=True)
class GeneralisationBound(Algorithm):
    fraction: float = limited(0.0, lambda v: 0 <= v < 1, "λ must lie in [0, λ_max)")  # λ/λ_max
    delta: float = limited(0.05, lambda v: 0 < v < 1, "must lie in (0, 1)")  # δ
    draws: int = positive(20_000)
    iterative = False
    trial: ClassVar[Trial] = Trial(({"draws": 50},))

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        names, group = problem.groups
        pairs = len(names) * (len(names) - 1) / 2
        strength = self.fraction * lambda_max(problem) if pairs else 0.0
        sizes, p = problem.federation.train.sizes, problem.weights
        means = np.random.default_rng(0).binomial(sizes, 0.5, (self.draws, len(sizes))) / sizes  # of the devices
        groups = np.stack([means[:, (group == i).numpy()].mean(axis=1) for i in range(len(names))], axis=1)
        penalty = np.abs(groups[:, :, None] - groups[:, None]).sum(axis=(1, 2)) / 2
        deviation = 0.5 - means @ p - strength * penalty
        for name, terms in (("printed", np.ones_like(p)), ("corrected", sizes)):
            squares = float(terms @ (p / sizes + strength * pairs) ** 2)
            slack = math.sqrt(0.5 * squares * math.log(1 / self.delta)) + strength * pairs
            yield Metric(f"exceeds_{name}", float((deviation > slack).mean()))
