"""HM1 (thesis "Federated Data Analytics", 2023, §3.3, Algorithm 3.1): devices tied by their parameters' covariance.

The model: y = xᵀθ_k + N(0, σ_k²) on device k, and Θ = (θ_1 … θ_K) is matrix normal with covariance Ω [K, K] between
devices and none between components. A round, from Θ and Ω:

    line 2   the server sends θ_k and p_k = Σ_i θ_i Ω⁻¹_ik to device k: nothing else of Ω or of other devices
    line 6   device, T times:  θ ← θ + 2η₂ (1/n) X(Y − Xᵀθ)
    line 8   device, once:     θ ← θ − 2η₂ p_k
    line 11  server:           Ω ← (1 − α) Ω + (α/d) ΘᵀΘ,  Ω₀ = I

Where the box is open or wrong:
- Line 6 has the sum over samples. With the stated η₂ = 0.01 this diverges for n above about 100, so `gradient: mean`
  is the default; `sum` is the box. (With mini-batches `sum` is n times the batch's mean.)
- Lines 6 and 8 share η₂ = η₁/σ², and line 6 runs T times for each line 8. In the limit of small steps a fixed point
  solves (T/n) X(Y − Xᵀθ_k) = p_k, or T X(Y − Xᵀθ_k) = p_k with sums: the posterior mode as if σ² were n/T, or 1/T.
  `prior: map` gives line 8 the weight Tσ²/n (Tσ² with sums) with the true σ²: the model's own mode. `prior: none` omits
  line 8: T·C steps on every device alone, the thesis' Separate.
- Ω stays invertible only through (1 − α)^c I; with α = 0.9 it is singular to working precision after 15 rounds. The
  inverse is of Ω + jitter · mean(diag Ω) · I; Ω itself is unchanged.
- `omega: true` inverts the Ω behind the data instead of the learned one, as the released script does.
- `kept`, if given, replaces 1 − α (the released C-MAPSS code has 0.8 with α = 0.8, which is not convex).
- `start: own` takes each device's own random start; `common` the one model that all methods start from.
Devices that do not take part keep θ_k (line 10). Each of several outputs (models/linear_outputs.py) has its own Ω.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Problem, State, Trial, limited, one_of, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear.estimators import parameter_errors, pulls, updated


@dataclass(frozen=True)
class HM1(Algorithm):
    lr: float = positive(0.01, "the step must be positive")  # η₂
    alpha: float = limited(0.1, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    kept: float | None = limited(None, lambda v: 0 <= v <= 1, "must lie in [0, 1]")
    jitter: float = limited(1e-10, lambda v: v >= 0, "must not be negative")
    gradient: str = one_of("mean", "mean", "sum")
    prior: str = one_of("box", "box", "map", "none")
    omega: str = one_of("learned", "learned", "true")
    start: str = one_of("common", "common", "own")
    record: str = one_of("errors", "errors", "condition")  # condition: also Ω's smallest and largest eigenvalue

    server_only = frozenset(["alpha", "kept", "jitter", "gradient", "prior", "omega", "start", "record"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.01}, {"lr": 0.02, "gradient": "sum", "alpha": 0.5}))

    def resolve(self, problem: Problem) -> Self:
        for key, value, fact in (("omega", "true", "omega"), ("prior", "map", "sigma")):
            if getattr(self, key) == value and fact not in problem.federation.facts:
                raise UserError(f"HM1: {key} = '{value}': this data set does not know its true {fact}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        clients, outputs = len(problem.federation), problem.task.model.outputs_apart
        own = problem.initial if self.start == "own" else None
        theta = torch.stack([(own(k) if own else w).flatten() for k in range(clients)])  # [K, P]
        omega = torch.eye(clients).to(theta).repeat(outputs, 1, 1)  # [S, K, K]
        if self.prior == "none":
            omega = theta.new_zeros(0)
        elif self.omega == "true":
            omega = torch.from_numpy(problem.federation.facts["omega"]).to(theta).expand(outputs, clients, clients)
        return {"like": w, "theta": theta, "omega": omega, "sent": self._sent(theta, omega)}

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        """Factors of lines 6 and 8 that depend on the device's n and σ²; None if there are none."""
        if self.gradient == "mean" and self.prior != "map":
            return None
        size, steps = int(problem.federation.train.sizes[client]), problem.steps
        likelihood = float(size) if self.gradient == "sum" else 1.0
        weights = [1.0]
        if self.prior == "map":
            variances = np.atleast_1d(problem.federation.facts["sigma"]) ** 2  # one per output
            weights = (steps * likelihood * variances / max(size, 1)).tolist()
        return next(iter(w.values())).new_tensor([likelihood, *weights])

    def messages(self, state: State, clients: np.ndarray) -> Iterable[Any]:
        return state["sent"][torch.from_numpy(clients)].unbind(0)  # [2, P] each: θ_k and p_k

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        theta, pull = map(task.parameters().unflatten, message)
        first = second = 2 * self.lr
        if local is not None:
            first, second = first * local[0], second * local[1:]
        for batch in batches:
            theta = theta.add(task.gradient(theta, batch), alpha=-first)
        return theta.add(pull, alpha=-second).flatten(), local

    def server_update(self, state: State, uploads: Uploads, cohort: Cohort) -> State:
        theta = state["theta"].clone()
        theta[torch.from_numpy(cohort.clients)] = uploads.stack()  # line 10
        omega = state["omega"]
        if self.omega == "learned" and self.prior != "none":
            omega = updated(omega, theta, 1 - self.alpha if self.kept is None else self.kept, self.alpha)  # line 11
        return {**state, "theta": theta, "omega": omega, "sent": self._sent(theta, omega)}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["like"].unflatten(state["theta"][max(client, 0)])

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from parameter_errors(state["theta"], problem.federation.facts)
        if self.record == "condition" and self.prior != "none":
            eigenvalues = torch.linalg.eigvalsh(state["omega"])
            yield Metric("omega_smallest", eigenvalues[..., 0].min().item(), "server")
            yield Metric("omega_largest", eigenvalues[..., -1].max().item(), "server")

    def _sent(self, theta: Tensor, omega: Tensor) -> Tensor:
        """The messages of line 2: [K, 2, P]."""
        p = torch.zeros_like(theta) if self.prior == "none" else pulls(theta, omega, self.jitter)
        return torch.stack([theta, p], dim=1)
