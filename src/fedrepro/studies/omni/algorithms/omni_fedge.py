"""Omni-Fedge (paper 001, Algorithm 1), as printed: one shared vector θ^sh, one head θ^(i) per node, and weights ω of
node j's loss for node i.

A round is three exchanges: (0) each node minimises its own loss over its head, by `head_steps` gradient steps, step 5;
(1) each node l computes the losses L_l(θ^(j), θ^sh) of every head, the means over all its n_l samples, step 7, and the
server takes ω*_ij = argmin ω·L_j(θ^(i), θ^sh) − log ω = 1/L_ij, step 9; (2) each node sends
Σ_j ω*_jl ∇_sh L_l(θ^(j), θ^sh), steps 10–11, and the server goes against 1/N times their sum, step 12.

Deviations: L is floored at `floor` (ω is unbounded as L → 0); losses and ω are computed every `refresh` rounds;
gradients are those of a mini-batch ("batch-wise training", §5); the argmin over the head is a number of gradient
steps. weights `even` puts the mean of all 1/L in place of each: the arm that tells the weights from the step length,
which grows with them. `ones` sets ω = 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fedrepro.algorithms.fedper import parted
from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Problem, State, Trial, limited, one_of, pairs, positive
from fedrepro.core.federation import Batch, Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task
from fedrepro.errors import UserError

PART = 128  # samples whose losses are computed at a time: few enough that activations stay in the cache


@dataclass(frozen=True)
class OmniFedge(Algorithm):
    lr: float = positive(0.02, "the step must be positive")  # η^com
    head_lr: float = positive(0.02, "the step must be positive")
    head_steps: int = limited(1, lambda v: v >= 1, "at least one step is needed")
    floor: float = positive(1e-3, "must be positive, or ω has no bound")
    refresh: int = limited(1, lambda v: v >= 1, "at least one round")  # rounds from one ω to the next
    weights: str = one_of("bayes", "bayes", "even", "ones")  # bayes: ω = 1/L; even: the mean of 1/L; ones: ω = 1
    exchanges: ClassVar[int] = 3
    server_only: ClassVar[frozenset[str]] = frozenset(["lr", "floor", "weights"])
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05, "head_lr": 0.1}, {"lr": 0.02, "head_lr": 0.05}), cases=("mlp, five steps",), gradients=1
    )

    def resolve(self, problem: Problem) -> Self:
        if problem.steps < self.head_steps + 1:
            needs = f"head_steps = {self.head_steps} needs {self.head_steps + 1} batches per round (local.steps)"
            raise UserError(f"OmniFedge: {needs}, there are {problem.steps}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        shared, head = split(problem.task, w)
        nodes = len(problem.federation)
        ones = torch.ones(nodes, nodes, dtype=torch.float64)
        heads = Params({k: torch.stack([v] * nodes) for k, v in head.items()})
        return {"shared": shared, "heads": heads, "losses": ones, "omega": ones.clone(), "exchange": 0}

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return None if self.weights == "ones" else problem.whole(client)

    def message(self, state: State, client: int) -> Any:
        heads, shared = state["heads"], state["shared"]
        if state["exchange"] == 0:
            return shared, Params({k: v[client] for k, v in heads.items()})
        omega = state["omega"][:, client].to(next(iter(shared.values())))
        return (shared, heads) if state["exchange"] == 1 else (shared, heads, omega)

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        shared, heads, *omega = message
        if batches.exchange == 1:
            stale = local is None or batches.round % self.refresh
            found = shared[next(iter(shared))].new_zeros(0) if stale else mean_losses(task, shared, heads, local)
            return found, None
        mine = list(batches.head(self.head_steps + 1))
        if batches.exchange == 2:
            return shared_gradient(task, shared, heads, omega[0], mine[-1]), None
        head = heads.clone()
        for batch in mine[:-1]:
            g = task.gradient(Params({**shared, **head}), batch, of=list(head))
            head = head.descend(g, self.head_lr)
        return head, None

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        nodes = len(state["omega"])
        if len(cohort.clients) != nodes:
            raise UserError("OmniFedge: every node takes part in every round (participation.clients: all)")
        if state["exchange"] == 0:
            return {**state, "heads": uploads.stack(), "exchange": 1}
        if state["exchange"] == 1:
            found = uploads.stack().to("cpu", torch.float64).T.contiguous()  # [head, node]
            new = {"losses": found, "omega": self.omega(found)} if found.numel() else {}
            return {**state, **new, "exchange": 2}
        total = weighted_sum(uploads, [1 / nodes] * nodes)
        return {**state, "shared": state["shared"].add(total, alpha=-self.lr), "exchange": 0}

    def omega(self, losses: Tensor) -> Tensor:
        """ω*, the minimiser of (2) in ω for given losses [head, node]; `even`: its mean."""
        best = 1 / losses.clamp_min(self.floor)
        return best if self.weights == "bayes" else torch.full_like(best, best.mean().item())

    def model(self, state: State, local: Any, client: int) -> Params:
        head = Params({k: v.mean(0) if client < 0 else v[client] for k, v in state["heads"].items()})
        return Params({**state["shared"], **head})

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if round == 0 or (self.weights != "ones" and (round - 1) % self.refresh == 0):
            yield from weighing(problem, state, round)
        if round == problem.rounds:  # the step length if all gradients were equal, to compare with FedSGD's rate
            yield Metric("step_length", self.lr * state["omega"].sum().item() / len(state["omega"]))


def split(task: Task, w: Params) -> tuple[Params, Params]:
    """(θ^sh, θ^(i)) of a model that declares the parameters of a node's own."""
    if not task.model.own:
        raise UserError(f"the model {type(task.model).__name__} has no parameters that are a node's own")
    return parted(task, w)


def losses(task: Task, shared: Params, heads: Params, batch: Any) -> Tensor:
    """L(θ^(j), θ^sh) for every head j, on one batch: [heads]. The layers before the heads are computed once."""
    return torch.func.vmap(lambda head: task.loss(Params({**shared, **head}), batch))(heads)


@torch.no_grad()
def mean_losses(task: Task, shared: Params, heads: Params, whole: Batch) -> Tensor:
    """The same over all samples of a node, a part at a time: [heads]."""
    parts = (Batch(x, y) for x, y in zip(whole.x.split(PART), whole.y.split(PART), strict=True))
    return torch.stack([len(part.y) / len(whole.y) * losses(task, shared, heads, part) for part in parts]).sum(0)


def shared_gradient(task: Task, shared: Params, heads: Params, omega: Tensor, batch: Any) -> Params:
    """Σ_j ω_j ∇_sh L(θ^(j), θ^sh)."""
    return torch.func.grad(lambda at: omega @ losses(task, at, heads, batch))(shared)


def weighing(problem: Problem, state: State, round: int) -> Iterator[Metric]:
    """Before the first round, the nodes' numbers of samples and the overlap of each two nodes' labels,
    Σ_c min(p_i(c), p_j(c)); then ω and its losses."""
    if round:
        yield from pairs("omega", state["omega"])
        yield from pairs("cross_loss", state["losses"])
        return
    for split_name, holdings in problem.federation.splits():
        for k, size in enumerate(holdings.sizes.tolist()):
            yield Metric("samples", size, split=split_name, client=k)
    counts = problem.federation.train.class_counts().double()
    shares = counts / counts.sum(1, keepdim=True)
    yield from pairs("overlap", torch.minimum(shares[:, None], shares[None]).sum(-1))
