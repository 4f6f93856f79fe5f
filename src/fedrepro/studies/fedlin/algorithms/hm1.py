"""HM1 (thesis "Federated Data Analytics", 2023, §3.3, Algorithm 3.1): devices tied by their parameters' covariance.

The model: y = xᵀθ_k + N(0, σ_k²) on device k, and Θ = (θ_1 … θ_K) is matrix normal with covariance Ω [K, K] between
devices and none between components. A round, from Θ and Ω:

    line 2   the server sends θ_k and p_k = Σ_i θ_i Ω⁻¹_ik to device k: nothing else of Ω or of other devices
    line 5   device, T times:  sample b of its n samples, X_b and Y_b
    line 6                     θ ← θ + 2η₂ X_b(Y_b − X_bᵀθ), the sum over the sampled ones
    line 8   device, once:     θ ← θ − 2η₂ p_k
    line 11  server:           Ω ← (1 − α) Ω + (α/d) ΘᵀΘ,  Ω₀ = I

Where the box is open or wrong:
- b is not stated. `batch` takes the first b of the drawn samples (None: all of them; with a full batch, all n). At the
  stated η₂ = 0.01 steps on sums contract for b = 5, 10, 20 but not for b = 200. `gradient: mean` divides by b.
- Lines 6 and 8 share η₂ = η₁/σ², and line 6 runs T times for each line 8. In the limit of small steps a fixed point
  solves T (b/n) X(Y − Xᵀθ_k) = p_k (means: b = 1): the posterior mode as if σ² were n/(Tb). `prior: map` gives line 8
  the weight Tbσ²/n with the true σ²: the model's own mode; with drawn batches it needs `batch`. `prior: none` omits
  line 8: T·C steps on every device alone, the thesis' Separate.
- Ω stays invertible only through (1 − α)^c I; with α = 0.9 it is singular to working precision after 15 rounds. The
  inverse is of Ω + jitter · mean(diag Ω) · I; Ω itself is unchanged.
- `omega: true` inverts the Ω behind the data instead of the learned one, as the released script does.
- `kept`, if given, replaces 1 − α (the released C-MAPSS code has 0.8 with α = 0.8, which is not convex); `divisor`
  replaces d in line 11 (that code divides by the degree, d − 1).
- `start: own` takes each device's own random start; `common` the one model that all methods start from.
- `arms`: name → changes of batch, gradient and prior: variants that train at once, on the outputs that the model has
  for the arm of that name.
Devices that do not take part keep θ_k (line 10). Each of several outputs (models/linear_outputs.py) has its own Ω.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Problem, State, Trial, limited, one_of, positive
from fedrepro.core.federation import Batch, Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear.estimators import by_output, parameter_errors, pulls, updated

ARM_KEYS = {"batch", "gradient", "prior"}


@dataclass(frozen=True)
class HM1(Algorithm):
    lr: float = positive(0.01, "the step must be positive")  # η₂
    batch: int | None = limited(None, lambda v: v >= 1, "must be at least 1")  # b
    alpha: float = limited(0.1, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    kept: float | None = limited(None, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    divisor: float | None = positive(None)
    jitter: float = limited(1e-10, lambda v: v >= 0, "must not be negative")
    gradient: str = one_of("mean", "mean", "sum")
    prior: str = one_of("box", "box", "map", "none")
    omega: str = one_of("learned", "learned", "true")
    start: str = one_of("common", "common", "own")
    record: str = one_of("errors", "errors", "condition")  # condition: also Ω's smallest and largest eigenvalue
    arms: Mapping[str, Mapping[str, Any]] | None = limited(
        None, lambda v: all(set(changes) <= ARM_KEYS for changes in v.values()), "an arm changes batch, gradient, prior"
    )

    server_only = frozenset(["alpha", "kept", "divisor", "jitter", "prior", "omega", "start", "record"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.01}, {"lr": 0.02, "gradient": "sum", "alpha": 0.5}))

    def resolve(self, problem: Problem) -> Self:
        for key, value, fact in (("omega", "true", "omega"), ("prior", "map", "sigma")):
            if any(getattr(arm, key) == value for arm in self._arms) and fact not in problem.federation.facts:
                raise UserError(f"HM1: {key} = '{value}': this data set does not know its true {fact}")
        if self.arms is not None and tuple(self.arms) != (known := getattr(problem.task.model, "arms", ())):
            raise UserError(f"HM1: arms = {', '.join(self.arms)}: the model's arms are {', '.join(known) or 'none'}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        clients = len(problem.federation)
        own = problem.initial if self.start == "own" else None
        theta = torch.stack([(own(k) if own else w).flatten() for k in range(clients)])  # [K, P]
        outputs = problem.task.model.outputs_apart
        tied = self._tied(outputs)
        omega = torch.eye(clients).to(theta).repeat(len(tied), 1, 1)  # [S, K, K], of the outputs with a prior
        if self.omega == "true" and tied:
            targets = getattr(problem.task.model, "targets", 1)
            true = torch.from_numpy(problem.federation.facts["omega"]).to(theta).expand(targets, clients, clients)
            omega = true[[output % targets for output in tied]]
        return {
            "like": w,
            "theta": theta,
            "omega": omega,
            "sent": self._sent(theta, omega, outputs),
            "outputs": outputs,
        }

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        """Factors of line 6 on a full batch's mean and of line 8: [2, S], or [2, 1] for all outputs; None: all 1."""
        arms, size = self._arms, int(problem.federation.train.sizes[client])
        if self.arms is None and (self.gradient, self.prior) in (("mean", "box"), ("mean", "none")):
            return None
        each = np.ones(1)
        if any(arm.prior == "map" for arm in arms):
            each = np.atleast_1d(problem.federation.facts["sigma"]) ** 2  # one per target
        elif self.arms is not None:
            each = np.ones(problem.task.model.outputs_apart // len(arms))
        factors = []
        for arm in arms:
            summed = arm.gradient == "sum"
            sampled = (size if arm.batch is None else min(arm.batch, size)) if summed else 1
            second = problem.steps * sampled * each / max(size, 1) if arm.prior == "map" else np.ones(len(each))
            factors.append(np.stack([np.full(len(each), float(size) if summed else 1.0), second]))
        return next(iter(w.values())).new_tensor(np.concatenate(factors, axis=1))

    def messages(self, state: State, clients: np.ndarray) -> Iterable[Any]:
        return state["sent"][torch.from_numpy(clients)].unbind(0)  # [2, P] each: θ_k and p_k

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        theta, pull = map(task.parameters().unflatten, message)
        whole = 2 * self.lr * (1.0 if local is None else local[0])
        weights: Tensor | None = None
        for batch in batches:
            if batches.whole is not None:
                theta = theta.add(task.gradient(theta, batch), alpha=-whole)
                continue
            if weights is None or batch.weight is not None:
                weights = self._weights(batch, task.model.outputs_apart)
            theta = theta.add(task.gradient(theta, batch._replace(weight=weights, size=1.0)), alpha=-2 * self.lr)
        second = 2 * self.lr * (1.0 if local is None else local[1])
        return theta.add(pull, alpha=-second).flatten(), local

    def server_update(self, state: State, uploads: Uploads, cohort: Cohort) -> State:
        theta = state["theta"].clone()
        theta[torch.from_numpy(cohort.clients)] = uploads.stack()  # line 10
        omega = state["omega"]
        if self.omega == "learned" and len(omega):
            kept = 1 - self.alpha if self.kept is None else self.kept
            each = by_output(theta, state["outputs"])[self._tied(state["outputs"])]
            omega = updated(omega, each, kept, self.alpha, self.divisor)  # line 11
        return {**state, "theta": theta, "omega": omega, "sent": self._sent(theta, omega, state["outputs"])}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["like"].unflatten(state["theta"][max(client, 0)])

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from parameter_errors(state["theta"], problem)
        if self.record == "condition" and len(state["omega"]):
            eigenvalues = torch.linalg.eigvalsh(state["omega"])
            yield Metric("omega_smallest", eigenvalues[..., 0].min().item(), "server")
            yield Metric("omega_largest", eigenvalues[..., -1].max().item(), "server")

    @cached_property
    def _arms(self) -> list[Self]:
        """The arms as algorithms; without arms, the algorithm."""
        if self.arms is None:
            return [self]
        return [dataclasses.replace(self, arms=None, **changes) for changes in self.arms.values()]

    def _tied(self, outputs: int) -> list[int]:
        """The outputs whose arm has a prior."""
        arms = self._arms
        return [o for o in range(outputs) if arms[o * len(arms) // outputs].prior != "none"]

    def _weights(self, batch: Batch, outputs: int) -> Tensor:
        """Lines 5 and 6: the weight of each drawn sample in each output's gradient, [B] or [B, S]."""
        drawn, arms = len(batch.y), self._arms
        place, each = torch.arange(drawn, device=batch.x.device), []
        for arm in arms:
            counted = (place < (drawn if arm.batch is None else arm.batch)).to(batch.x.dtype)
            if batch.weight is not None:
                counted = counted * batch.weight
            each.append(counted if arm.gradient == "sum" else counted / counted.sum())
        return each[0] if len(arms) == 1 else torch.stack(each, dim=-1).repeat_interleave(outputs // len(arms), dim=-1)

    def _sent(self, theta: Tensor, omega: Tensor, outputs: int) -> Tensor:
        """The messages of line 2: [K, 2, P]."""
        p = torch.zeros_like(theta)
        if tied := self._tied(outputs):
            by_output(p, outputs)[tied] = pulls(by_output(theta, outputs)[tied], omega, self.jitter)
        return torch.stack([theta, p], dim=1)
