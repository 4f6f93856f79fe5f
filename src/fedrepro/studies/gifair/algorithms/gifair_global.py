"""GIFAIR-FL-Global (thesis, Algorithm 2.2): FedAvg whose clients scale their steps by the rank of their group's loss.

    θ_k ← θ_k − η (1 + λ r_k/(p_k |A_{s_k}|)) g_k(θ_k),   r_k = Σ_{j ≠ s_k} sign(L_{s_k} − L_j),

L_i being the mean loss of group i; λ = 0 is FedAvg. Groups are the federation's; without any, each client is its own
(individual fairness, d = K). λ is given as `fraction` of λ_max = min_k p_k |A_{s_k}|/(d − 1), below which all weights
are positive (Lemma 3), or as `strength` itself; at λ_max or above it is refused.

The server ranks by what each client last sent, F_k at the end of its local training (step 12; ranks: stale). With
ranks: exact every client sends F_k at the server's model before each round (§2.3.3), so all of them receive the model.
Choices: the box needs losses of clients that were not sampled; here a client counts with its last known loss, and a
group without any ties with all others. The individual objective as printed lacks p_k before (1 + λ r_k/p_k); Lemma 3
with |A| = 1, which has it, is used.

The authors' public code differs from the box in four points; `gifair_authors` runs with them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Traffic, Trial, limited, not_negative, one_of
from fedrepro.core.federation import Batches
from fedrepro.core.metrics import rank_correlation
from fedrepro.core.params import Params, Uploads, averaged, tree_bytes
from fedrepro.core.task import Task
from fedrepro.studies.gifair.ranks import client_ranks


@dataclass(frozen=True)
class GIFAIRGlobal(FedAvg):
    fraction: float = limited(0.5, lambda v: 0 <= v < 1, "λ must lie in [0, λ_max)")  # λ/λ_max
    strength: float | None = not_negative(None, "λ must not be negative")  # λ; None: fraction · λ_max
    ranks: str = one_of("stale", "stale", "exact")
    label: ClassVar[str] = "GIFAIR-FL-Global"
    server_only: ClassVar[frozenset[str]] = frozenset(["fraction", "strength", "ranks"])
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "fraction": 0.9}, {"lr": 0.1, "fraction": 0.4, "ranks": "exact"}))

    def resolve(self, problem: Problem) -> Self:
        limit = lambda_max(problem)
        if self.strength is None:
            return replace(self, strength=self.fraction * limit if limit < torch.inf else 0.0)
        self.require(self.strength < limit, "strength", f"λ must lie below λ_max = {limit:.6g}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        assert self.strength is not None, "resolve sets it"
        scale = self.strength / held(problem)  # λ/(p_k |A_{s_k}|)
        return {"w": w, "scale": scale, "rank": torch.zeros_like(scale), **no_losses(problem)}

    def survey(self, problem: Problem, state: State) -> tuple[State, Traffic]:
        if self.ranks == "stale":
            return state, Traffic()
        clients, w = len(problem.federation), state["w"]
        losses, _ = problem.task.evaluate(w, problem.federation.train, list(range(clients))).to("cpu")
        traffic = Traffic(clients * tree_bytes(w), clients * next(iter(w.values())).element_size())
        rank = self.ranked(losses, torch.ones_like(state["known"]), state["group"])
        return {**state, "exact": losses, "rank": rank}, traffic

    def message(self, state: State, client: int) -> Any:
        coefficient = state["scale"][client] * state["rank"][client]
        return state["w"], coefficient.to(next(iter(state["w"].values())))

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        theta, coefficient = message
        w = theta.clone()
        for t, batch in enumerate(batches):
            w = w.descend(self.direction(task, w, batch, theta) * (1 + coefficient), self.step(batches, t))
        return (w, task.training_loss(w, batches)), local

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        w, sent = averaged(uploads, cohort.weights)
        losses, known = state["losses"].clone(), state["known"].clone()
        losses[cohort.clients] = sent
        known[cohort.clients] = True
        return {**state, "w": w, "losses": losses, "known": known, "rank": self.ranked(losses, known, state["group"])}

    def ranked(self, losses: Tensor, known: Tensor, group: Tensor) -> Tensor:
        """r_k [K] from the clients' losses [K], whether they are known [K], and their groups [K]."""
        return client_ranks(losses, known, group)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if round == 0:
            groups = problem.federation.groups or [""] * len(problem.federation)
            for split, holdings in problem.federation.splits():
                if len(holdings) == len(groups):
                    for k, (size, group) in enumerate(zip(holdings.sizes.tolist(), groups, strict=True)):
                        yield Metric("samples", size, split=split, client=k, group=group)
            if (limit := lambda_max(problem)) < torch.inf and self.strength is not None:
                yield Metric("lambda_max", limit)
                yield Metric("lambda", self.strength)
        elif "exact" in state and state["known"].sum() > 2:
            both = (state[name][state["known"]].numpy() for name in ("exact", "losses"))
            yield Metric("rank_agreement", rank_correlation(*both))


def held(problem: Problem) -> Tensor:
    """p_k |A_{s_k}| [K]."""
    _, group = problem.groups
    return torch.from_numpy(problem.weights).double() * torch.bincount(group)[group]


def lambda_max(problem: Problem) -> float:
    """min_k p_k |A_{s_k}|/(d − 1): below it all weights are positive; infinite for a single group."""
    others = len(problem.groups[0]) - 1
    return float(held(problem).min()) / others if others else float("inf")


def no_losses(problem: Problem) -> State:
    """Group, last known loss and whether it is known, of each client [K]."""
    _, group = problem.groups
    return {"group": group, "losses": torch.zeros(len(group)).double(), "known": torch.zeros_like(group).bool()}
