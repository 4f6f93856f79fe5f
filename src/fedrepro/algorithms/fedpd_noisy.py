"""FedPD with the noise of the SGLD oracle, without its averaging: the baseline of the high-noise case (§6.1).

Step q of a node is x ← x − η_q·clip(h) + √(η_q β)·N(0, I) with clip(h) = h / max(1, ‖h‖/C), the whole gradient h of the
Lagrangian of a mini-batch (Algorithm 2). β is a variance scale, as §6 uses it; in (8)–(12) it is the inverse of one.
The node returns its last sample. The paper does not say whether the baseline's steps decrease after Q₀ as those of
Algorithm 2 do: `decreasing` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from fedrepro.algorithms.fedpd import FedPD
from fedrepro.errors import UserError


@dataclass(frozen=True)
class FedPDNoisy(FedPD):
    beta: float = 1e-4  # β
    clip: float = math.inf  # C
    burn_in: int = 0  # Q₀
    decreasing: bool = False  # steps after Q₀: η(q − Q₀)^(−1/3)

    noisy = True

    def __post_init__(self):
        super().__post_init__()
        self.require(self.beta >= 0, "beta", "a variance must not be negative")
        self.require(self.clip > 0, "clip", "the norm must be positive (.inf: no clipping)")
        self.require(self.burn_in >= 0, "burn_in", "must not be negative")

    def resolve(self, problem):
        steps = min(problem.steps, self.local_steps or problem.steps)
        if self.burn_in >= steps:
            raise UserError(f"{type(self).__name__}: burn_in = {self.burn_in} leaves none of the {steps} local steps")
        return self

    def clipped(self, h):
        excess = (h.norm() / self.clip).clamp(min=1.0)
        return h / excess, (excess > 1).to(h.dtype)

    def step(self, q: int):
        """η_q."""
        late = self.decreasing and q > self.burn_in
        return self.lr * (q - self.burn_in) ** (-1 / 3) if late else self.lr

    def move(self, x, h, q, batches):
        eta = self.step(q)
        return x - eta * h + torch.as_tensor(eta * self.beta).sqrt().to(x) * batches.noise[q]
