"""FGPR (thesis "Federated Data Analytics", 2023, Algorithms 4.1 and 4.2): the devices learn one Gaussian process prior.

    device   E steps  θ_k ← θ_k − η g_k(θ_k; ξ_k)   from the server's θ, g_k of a mini-batch's likelihood over its size
    server   θ ← Σ p_k θ_k, or the plain average of devices that were drawn with probability p_k

and each device predicts with θ from its own data. Settings cover what the thesis leaves open; the defaults are the
released code's: `optimiser: adam`, reset after every round, on `scale: softplus` (θ = softplus(raw) + least value), the
average on the natural scale. `scale: natural` is Algorithm 4.2 to the letter, with θ projected onto the parameter
space. `gradient: theorem` divides the gradient in θ₁ by log M instead of M (§4.4.2: s₁ = τ log M, s₂ = M; τ = 1).
`schedule: inverse` is η ~ 1/t, as in the theorems: η_t = lr · delay / (delay + t), t counting all local steps.
`known: lengthscale` holds l at the truth of simulated data, as the theorems assume.

`period` (Remark 26): the server sends θ every `period` rounds; in between each device continues from its own θ. With
one step per round it is E. From `rounds` on it is one-shot communication.

`last_weight` (Fig. 4.8) is the weight of the last device; the others share the rest in proportion to their p_k.
`newcomers` (App. C.3): see fedavg_transfer.py.

Recorded if the data set knows the truth: error_signal, error_noise and error (their sum), the squared distances of θ₁
and θ₂ from it, error_lengthscale, and θ₁ and θ₂ themselves as theta_signal and theta_noise. Always iterations, local
steps so far (of the device with most), and uploaded, the numbers sent by all devices. With `watch`, gradient_norm:
‖∇ Σ p_k L_k(θ)/N_k‖² in (θ₁, θ₂) on all data (Theorems 31 and 42), at rounds 0, 1, 2, 4, 8, … and the last.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from fedrepro.algorithms.fedavg_transfer import FedAvgTransfer
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial, limited, one_of, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.device_errors import gradient_norm, parameter_errors, true_lengthscale
from fedrepro.studies.fgpr.models.gaussian_process import GaussianProcess

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # Adam's defaults


@dataclass(frozen=True)
class FGPR(FedAvgTransfer):
    lr: float = 0.01
    optimiser: str = one_of("adam", "adam", "sgd")
    scale: str = one_of("softplus", "softplus", "natural")
    gradient: str = one_of("mean", "mean", "theorem")
    schedule: str = one_of("constant", "constant", "inverse")
    delay: float = positive(10.0)
    known: str = one_of("nothing", "nothing", "lengthscale")
    last_weight: float | None = limited(None, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    period: int = limited(1, lambda v: v >= 1, "must be 1 or more")
    watch: bool = False

    server_only = FedAvgTransfer.server_only | {"last_weight", "watch"}
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05}, {"lr": 0.02, "optimiser": "sgd", "schedule": "inverse"}),
        cases=("gaussian process, mini-batch", "gaussian process, full batch"),
    )

    def init(self, problem: Problem, w: Params) -> State:
        if not isinstance(problem.task.model, GaussianProcess):
            raise UserError(f"{type(self).__name__}: the model must be a Gaussian process")
        if self.known == "lengthscale":
            w = Params({**w, "lengthscale": true_lengthscale(problem.federation, w["lengthscale"])})
        return {**super().init(problem, w), "uploaded": 0.0}

    def init_client(self, problem: Problem, client: int, w: Params) -> Params | None:
        return w if self.period > 1 else None

    def client_update(self, task: Task, message: Params, local: Any, batches: Batches) -> tuple[Params, Any]:
        theta, _ = self.steps(task, local if batches.round % self.period else message, batches)
        return theta, theta if self.period > 1 else None

    def steps(
        self, task: Task, theta: Params, batches: Batches, moments: tuple[Params, Params] | None = None
    ) -> tuple[Params, tuple[Params, Params]]:
        """θ after a round's steps, and Adam's moments: new ones, or `moments` of the rounds before."""
        model: Any = task.model
        lengthscale = theta["lengthscale"]
        raw = model.to_raw(theta) if self.scale == "softplus" else theta
        before = batches.round * len(batches)  # steps of earlier rounds
        first, second = moments or (raw * 0.0, raw * 0.0)
        for t, batch in enumerate(batches):
            g = task.gradient(theta, batch)
            if self.gradient == "theorem":
                g["signal"] = g["signal"] * (len(batch.y) / math.log(max(2, len(batch.y))))
            if self.scale == "softplus":  # dθ/draw = 1 − exp(−(θ − least value))
                g = Params({name: v * -torch.expm1(model.minima[name] - theta[name]) for name, v in g.items()})
            if self.optimiser == "adam":
                n = t + 1 + (before if moments else 0)
                first = first * BETA_1 + g * (1 - BETA_1)
                second = Params({name: v * BETA_2 + (1 - BETA_2) * g[name].square() for name, v in second.items()})
                size = {name: (v / (1 - BETA_2**n)).sqrt() + EPSILON for name, v in second.items()}
                g = Params({name: v / (1 - BETA_1**n) / size[name] for name, v in first.items()})
            if self.known == "lengthscale":
                g["lengthscale"] = torch.zeros_like(g["lengthscale"])
            raw = raw.add(g * -self.rate(before + t))
            if self.scale == "natural":
                raw = model.project(raw)
            theta = model.from_raw(raw) if self.scale == "softplus" else raw
        if self.known == "lengthscale":
            theta = Params({**theta, "lengthscale": lengthscale})  # without rounding errors
        return theta, (first, second)

    def rate(self, t: int) -> float:
        return self.lr if self.schedule == "constant" else self.lr * self.delay / (self.delay + t)

    def server_update(self, state: State, uploads: Uploads[Params], cohort: Cohort) -> State:
        weights: Any = cohort.weights / cohort.weights.sum() if self.newcomers else cohort.weights
        if self.last_weight is not None:
            others = weights[:-1] * (1 - self.last_weight) / weights[:-1].sum()
            weights = np.append(others, self.last_weight)
        w = weighted_sum(uploads, weights)
        sent = len(cohort.clients) * sum(v.numel() for v in w.values())
        return {**state, "w": w, "uploaded": state["uploaded"] + sent}

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield Metric("uploaded", state["uploaded"])
        yield Metric("iterations", float(round * problem.steps))
        yield from parameter_errors(problem, [state["w"]])
        if self.watch and (round & (round - 1) == 0 or round == problem.rounds):
            yield Metric("gradient_norm", gradient_norm(problem, state["w"]))
