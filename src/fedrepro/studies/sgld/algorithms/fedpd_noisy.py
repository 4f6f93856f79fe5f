"""FedPD with the noise of the SGLD oracle, without its averaging: the baseline of the high-noise case (§6.1).

Step q of a node is x ← x − η_q·clip(h) + √(η_q β)·N(0, I) with clip(h) = h / max(1, ‖h‖/C), the whole gradient h of the
Lagrangian of a mini-batch (Algorithm 2). β is a variance scale, as §6 uses it; in (8)–(12) it is the inverse of one.
The node returns its last sample. Steps after Q₀ are η(q − Q₀)^(−decay): 0 keeps them fixed, ⅓ is Algorithm 2. The paper
does not say which of the two its baseline uses. Beyond the paper: `clip_each` clips the gradient of each record to C,
as DP-SGD does (Abadi et al. 2016), instead of the whole; λ + γ(x − x₀) depends on no record and is not clipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from fedrepro.algorithms.fedpd import FedPD
from fedrepro.core.algorithm import Metric, Problem, State, Trial, limited, not_negative, positive
from fedrepro.core.federation import Batch, Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.errors import UserError


@dataclass(frozen=True)
class FedPDNoisy(FedPD):
    beta: float = not_negative(1e-4, "a variance must not be negative")  # β
    clip: float = positive(10.0, "the norm must be positive (infinite: no clipping)")  # C
    burn_in: int = not_negative(0)  # Q₀
    decay: float = limited(0.0, lambda v: 0 <= v < 1, "must lie in [0, 1): 0 for fixed steps, 1/3 in Algorithm 2")
    clip_each: bool = False  # clip each record's gradient, not the whole
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

    def gradient(self, task: Task, w: Params, batch: Any) -> Tensor:
        if not self.clip_each:
            return super().gradient(task, w, batch)
        each = vmap(grad(lambda at, x, y: task.loss(at, Batch(x[None], y[None]))), in_dims=(None, 0, 0))
        rows = each(w, batch.x, batch.y).flatten(stacked=True)  # [B, P]
        factors = 1 / (rows.norm(dim=1) / self.clip).clamp(min=1.0)
        return (rows * (batch.shares() * factors)[:, None]).sum(0)

    def clipped(self, h: Tensor) -> tuple[Tensor, Tensor | float]:
        if self.clip_each:
            return h, 0.0
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
            facts = {"beta": self.beta, "clip": self.clip, "clip_each": float(self.clip_each)}
            yield from (Metric(name, value) for name, value in (facts | {"batch": float(state["batch"])}).items())
            for k, size in enumerate(problem.federation.train.sizes.tolist()):
                yield Metric("samples", size, client=k)
        if self.account and round == problem.rounds and problem.federation.test is not None:
            for name, value in membership(problem, state["w"]).items():
                yield Metric(name, value)


@torch.no_grad()
def membership(problem: Problem, w: Params) -> dict[str, float]:
    """How well the loss at w tells training records from test records of the same nodes (Yeom et al. 2018): the area
    under the attack's curve, and the largest difference of its true and false positives over all thresholds."""
    test = problem.federation.test
    assert test is not None
    members, others = (
        torch.cat([_losses(problem.task, w, part.full_batch(k)) for k in range(len(part)) if part.sizes[k]])
        for part in (problem.federation.train, test)
    )
    below = torch.searchsorted(members.sort().values, others, right=False).to(torch.float64)
    upto = torch.searchsorted(members.sort().values, others, right=True).to(torch.float64)
    thresholds = torch.cat([members, others]).unique()
    hits, alarms = (
        torch.searchsorted(part.sort().values, thresholds, right=True) / len(part) for part in (members, others)
    )
    area = float((below + upto).mean() / (2 * len(members)))
    return {"attack_area": area, "attack_advantage": float((hits - alarms).max())}


def _losses(task: Task, w: Params, batch: Batch) -> Tensor:
    """The loss of each record."""
    return task.sample_loss(functional_call(task.model, dict(w), (batch.x,)), batch.y).cpu()
