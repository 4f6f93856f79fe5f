"""FedPD (Zhang et al., arXiv 2005.11418), in the form of Algorithm 1 of "SGLD for noise-intrinsic federated learning".

Node i keeps a dual λ_i and is sent x₀. It takes Q gradient steps on its augmented Lagrangian (4),

    L_i(x) = F_i(x) + ⟨λ_i, x − x₀⟩ + γ/2 ‖x − x₀‖²,   h = ∇F_i(x) + λ_i + γ(x − x₀)   (6)

then λ_i ← λ_i + ηγ(x_i − x₀), and uploads x_i + λ_i/γ; the server moves by η towards their mean. γ is 1/η of FedPD.

Contradictions in the paper: the box has the opposite sign of (4) and then descends, (4) is used; (14) lacks the 1/γ of
the box; the box's q = 0 … Q runs Q + 1 steps, Q are taken. Its p (skipped communication) is never used. Deviation:
FedPD's authors continue from the node's own x_i (`start: own`); Algorithm 2 starts from x₀ (`start: server`), as do all
methods here, so that they differ in one thing at a time. Models are flat vectors [P] inside.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedrepro.core.algorithm import (
    Algorithm,
    Cohort,
    Metric,
    Problem,
    State,
    Trial,
    limited,
    not_negative,
    one_of,
    positive,
)
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedPD(Algorithm):
    lr: float = positive(0.01)
    gamma: float = positive(1.0)  # γ
    server_step: float = positive(1.0)  # η
    start: str = one_of("server", "server", "own")  # of a round's steps: server (x₀) or own (the node's last x_i)
    #: Q, if less than the batches that the experiment draws
    local_steps: int | None = limited(None, lambda v: v >= 1, "at least one step is needed")
    ridge: float = not_negative(0.0)  # F_i + ridge/2 ‖x‖², for Theorem 5.2, which needs a loss that grows at infinity
    record_every: int = not_negative(0, "must not be negative (0: never)")  # rounds between the numbers of `metrics`

    server_only = frozenset(["record_every"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "gamma": 0.5}, {"lr": 0.1, "start": "own"}))

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        x = w.flatten()
        return {"dual": torch.zeros_like(x)} | ({"x": x} if self.start == "own" else {})

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        x0, dual = message.flatten(), local["dual"]
        x, clipped = self.oracle(task, message, x0, local, batches)
        dual = dual + self.server_step * self.gamma * (x - x0)
        local = {"dual": dual} | ({"x": x} if self.start == "own" else {})
        size = x0.new_tensor(batches.size or 0.0)  # expected size of a Poisson batch, for the privacy account
        return {"x0": x + dual / self.gamma, "dual": dual, "clipped": clipped, "batch": size}, local

    def oracle(self, task: Task, shape: Params, x0: Tensor, local: Any, batches: Batches) -> tuple[Tensor, Tensor]:
        """x_i of this round [P], and the share of its gradients that were clipped."""
        x = local["x"] if self.start == "own" else x0
        found, clipped = x, x0.new_zeros(())
        steps = min(len(batches), self.local_steps or len(batches))
        for q, batch in enumerate(itertools.islice(batches, steps)):
            g = self.gradient(task, shape.unflatten(x), batch)
            h, cut = self.clipped(g + self.ridge * x + local["dual"] + self.gamma * (x - x0))
            x = self.move(x, h, q, batches)
            found = self.collect(found, x, q)
            clipped = clipped + cut
        return found, clipped / steps

    def gradient(self, task: Task, w: Params, batch: Any) -> Tensor:
        """∇F_i of a batch [P]."""
        return task.gradient(w, batch).flatten()

    def clipped(self, h: Tensor) -> tuple[Tensor, Tensor | float]:
        """The gradient that is used, and whether it was clipped."""
        return h, 0.0

    def move(self, x: Tensor, h: Tensor, q: int, batches: Batches) -> Tensor:
        """Step q (from 0)."""
        return x - self.lr * h

    def collect(self, found: Tensor, x: Tensor, q: int) -> Tensor:
        """The oracle's result if step q, which led to x, were its last."""
        return x

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        return {**state, **self.aggregate(state["w"], uploads.stack(), cohort)}

    def aggregate(self, w: Params, uploaded: dict[str, Tensor], cohort: Cohort) -> State:
        """The new x₀, with the duals [K, P] that led to it, the share of clipped gradients and the batch size."""
        weights = torch.as_tensor(cohort.weights).to(uploaded["x0"])
        x0 = w.flatten()
        x0 = x0 + self.server_step * (weights @ uploaded["x0"] - x0)
        means = {name: uploaded[name].mean() for name in ("clipped", "batch")}
        return {"w": w.unflatten(x0), "duals": uploaded["dual"], **means}

    def metrics(self, problem: Problem, state: State, round: int) -> Iterable[Metric]:
        """Distance from a fixed point, where λ_i + ∇F_i(x₀) = 0 for every node and Σ λ_i = 0."""
        if not self.record_every or round % self.record_every or round == 0:
            return
        nodes = range(len(problem.federation))
        gradients = torch.stack([problem.task.gradient(state["w"], problem.whole(k)).flatten() for k in nodes])
        gradients = gradients + self.ridge * state["w"].flatten()
        duals = state["duals"]
        if len(duals) == len(gradients):
            residual = (duals + gradients).norm(dim=1).mean()
            yield Metric("residual", float(residual))
            yield Metric("relative_residual", float(residual / gradients.norm(dim=1).mean()))
            yield Metric("dual_sum", float(duals.sum(0).norm() / duals.norm(dim=1).sum()))
        yield Metric("clipped", float(state["clipped"]))
