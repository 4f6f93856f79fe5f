"""FedPD with the noise of the SGLD oracle, without its averaging: the baseline of the high-noise case (§6.1).

Step q of a node is x ← x − η_q·clip(h) + √(η_q β)·N(0, I) with clip(h) = h / max(1, ‖h‖/C), the whole gradient h of the
Lagrangian of a mini-batch (Algorithm 2). β is a variance scale, as §6 uses it; in (8)–(12) it is the inverse of one.
The node returns its last sample. Steps after Q₀ are η(q − Q₀)^(−decay): 0 keeps them fixed, ⅓ is Algorithm 2. The paper
does not say which of the two its baseline uses.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor

from fedrepro.algorithms.fedpd import FedPD
from fedrepro.core.algorithm import Metric, Problem, State, Trial, limited, not_negative, positive
from fedrepro.core.federation import Batches
from fedrepro.errors import UserError


@dataclass(frozen=True)
class FedPDNoisy(FedPD):
    beta: float = not_negative(1e-4, "a variance must not be negative")  # β
    clip: float = positive(10.0, "the norm must be positive (infinite: no clipping)")  # C
    burn_in: int = not_negative(0)  # Q₀
    decay: float = limited(0.0, lambda v: 0 <= v < 1, "must lie in [0, 1): 0 for fixed steps, 1/3 in Algorithm 2")
    account: bool = False  # record the inputs of the privacy account (fedrepro.studies.sgld.measures)
    noisy = True
    server_only = FedPD.server_only | {"account"}
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05, "beta": 0.01, "clip": 5.0}, {"lr": 0.1, "beta": 0.02, "clip": 2.0, "account": True})
    )

    def resolve(self, problem: Problem) -> Self:
        steps = min(problem.steps, self.local_steps or problem.steps)
        if self.burn_in >= steps:
            raise UserError(f"{type(self).__name__}: burn_in = {self.burn_in} leaves none of the {steps} local steps")
        return self

    def clipped(self, h: Tensor) -> tuple[Tensor, Tensor | float]:
        excess = (h.norm() / self.clip).clamp(min=1.0)
        return h / excess, (excess > 1).to(h.dtype)

    def step(self, q: int) -> float:
        """η_q."""
        return self.lr * (q - self.burn_in) ** -self.decay if q > self.burn_in else self.lr

    def move(self, x: Tensor, h: Tensor, q: int, batches: Batches) -> Tensor:
        assert batches.noise is not None  # for a noisy method
        eta = self.step(q)
        return x - eta * h + (eta * self.beta) ** 0.5 * batches.noise[q]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from super().metrics(problem, state, round)
        if self.account and round == 1:
            for q in range(min(problem.steps, self.local_steps or problem.steps)):
                yield Metric("step_size", self.step(q), step=q)
            for name, value in (("beta", self.beta), ("clip", self.clip), ("batch", float(state["batch"]))):
                yield Metric(name, value)
            for k, size in enumerate(problem.federation.train.sizes.tolist()):
                yield Metric("samples", size, client=k)
