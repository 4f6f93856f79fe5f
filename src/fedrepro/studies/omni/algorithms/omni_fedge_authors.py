"""Omni-Fedge as the authors' public code runs it, which differs from the paper (see `omni_fedge`):

- every node has a whole model with its own initialisation; the "shared" part is never synchronised;
- ω_i sums to 1, lies in [1e-4, 1] and minimises Σ_j L_j √ω_j − ½ Σ_j log ω_j (SciPy's SLSQP, from the last ω);
- the losses that ω_i is computed from are those of all models on node i's data, but ω_i is then used to weigh model
  i's gradients on all nodes' data: rows and columns are exchanged;
- no minimisation over the head: a step on the shared part, then one on the head, each against Σ_j ω_ij ∇L_j(w_i),
  without the 1/N of Algorithm 1.

A round is three exchanges, each on the next mini-batch of a node: losses of all models; gradients of the shared part;
gradients of the heads at the new shared part. In the code a node's samples are shuffled and cut into 100 batches, which
are walked through (`local.batches` of an experiment). The models start from their own initialisations or, with
`local_epochs`, from models trained on each node's own data: in the code the answer to "i.i.d.?" also answers "start
from local models?", so its i.i.d. runs do, and the others do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch

from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Problem, State, Trial, not_negative, positive
from fedrepro.core.federation import Batch, Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.errors import UserError
from fedrepro.studies.omni.algorithms.omni_fedge import split, weighing

SMALLEST = 1e-4
LOCAL_BATCH, LOCAL_LR = 100, 0.01  # of local training


@dataclass(frozen=True)
class OmniFedgeAuthors(Algorithm):
    lr: float = positive(0.02, "the step must be positive")
    local_epochs: int = not_negative(0)  # of local training before the first round
    exchanges: ClassVar[int] = 3
    server_only: ClassVar[frozenset[str]] = frozenset(["lr", "local_epochs"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1}), cases=("mlp, five steps",), gradients=12)

    def resolve(self, problem: Problem) -> Self:
        if problem.steps < 3:
            raise UserError(f"OmniFedgeAuthors: needs 3 batches per round (local.steps), there are {problem.steps}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        nodes = len(problem.federation)
        split(problem.task, w)  # an error here rather than in the first round
        models = own_models(problem, w, self.local_epochs)
        omega = torch.full((nodes, nodes), 1 / nodes, dtype=torch.float64)
        return {"models": models, "omega": omega, "losses": torch.ones_like(omega), "exchange": 0}

    def message(self, state: State, client: int) -> Any:
        return state["models"]

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        batch = list(batches)[batches.exchange]
        if batches.exchange == 0:
            return torch.func.vmap(lambda w: task.loss(w, batch))(message), local
        shared, head = split(task, message)
        names = list(shared) if batches.exchange == 1 else list(head)
        return torch.func.vmap(lambda w: task.gradient(w, batch, of=names))(message), local

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        nodes = len(state["omega"])
        if len(cohort.clients) != nodes:
            raise UserError("OmniFedgeAuthors: every node takes part in every round (participation.clients: all)")
        exchange = state["exchange"]
        if exchange == 0:
            losses = uploads.stack().detach().to("cpu", torch.float64)  # [node, model]
            omega = [weights(row, last) for row, last in zip(losses.numpy(), state["omega"].numpy(), strict=True)]
            return {**state, "losses": losses.T.contiguous(), "omega": torch.tensor(np.array(omega)), "exchange": 1}
        models = Params(state["models"])
        for j, gradients in enumerate(uploads):  # of node j: one for every model
            for k, g in gradients.items():
                step = self.lr * state["omega"][:, j].to(g).reshape(-1, *[1] * (g.dim() - 1))
                models[k] = torch.addcmul(models[k], step, g, value=-1)
        return {**state, "models": models, "exchange": (exchange + 1) % 3}

    def model(self, state: State, local: Any, client: int) -> Params:
        return Params({k: v[max(client, 0)] for k, v in state["models"].items()})

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        return weighing(problem, state, round)


def own_models(problem: Problem, w: Params, epochs: int) -> Params:
    """[nodes, …]: each node's own initialisation, trained on its own data for `epochs` as the code's local training is.
    The order of samples is the same for every seed; the samples are not."""
    models = []
    for k in range(len(problem.federation)):
        own = (problem.initial(k) if problem.initial else w).clone()
        x, y, *_ = problem.federation.train.full_batch(k)
        for epoch in range(epochs):
            order = torch.from_numpy(streams.generator("local training", 0, "batches", k, epoch).permutation(len(y)))
            for rows in order.split(LOCAL_BATCH):
                own = own.descend(problem.task.gradient(own, Batch(x[rows], y[rows])), LOCAL_LR)
        models.append(own)
    return Params({name: torch.stack([own[name] for own in models]) for name in w})


def weights(losses: np.ndarray, start: np.ndarray) -> np.ndarray:
    """argmin Σ_j L_j √ω_j − ½ Σ_j log ω_j over ω_j ∈ [1e-4, 1], Σ ω_j = 1: [nodes]."""
    from scipy.optimize import LinearConstraint, minimize  # here: it takes half a second to import

    found = minimize(
        lambda omega: losses @ np.sqrt(omega) - 0.5 * np.log(omega).sum(),
        start,
        jac=lambda omega: 0.5 * losses / np.sqrt(omega) - 0.5 / omega,
        bounds=[(SMALLEST, 1.0)] * len(losses),
        constraints=LinearConstraint(np.ones(len(losses)), 1.0, 1.0),
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    inside: np.ndarray = np.clip(found.x, SMALLEST, 1.0)  # SLSQP may end a rounding error outside
    return inside / inside.sum()
