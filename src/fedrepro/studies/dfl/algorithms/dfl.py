"""DFL (Bhattacharyya & Kalaimani, arXiv 2601.01793, Algorithm 1): several servers, each with its own clients.

An epoch is T_C gradient steps at every client (3), each server's average over its clients (4), T_S consensus
steps W ← A·W over the graph of the servers (5), and the broadcast. Client k belongs to server ⌊k / N⌋.

Choices where the paper is silent: A has Metropolis weights, doubly stochastic on any graph; γ is a fraction of
1/(L·T_C), the limit of Theorem 1, unless it is given. The box's inclusive loops would run T_C + 1 and T_S + 1 steps;
the text's T_C and T_S are used. Beyond the paper: after round `lost_at` a server (with its clients) or a link is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial, limited, not_negative, one_of
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.errors import UserError, nearest
from fedrepro.studies.dfl.consensus import GRAPHS, contraction, furthest, mixing, server_distances, server_graph

DETAILED_EPOCHS = 3


@dataclass(frozen=True)
class DFL(FedAvg):
    lr: float = field(default=1.0, init=False)  # γ below is the step, and the paper keeps it constant
    decay: float = field(default=1.0, init=False)
    servers: int = limited(5, lambda v: v >= 1, "at least one server is needed")
    server_steps: int = limited(25, lambda v: v >= 1, "T_S must be at least 1, or the servers never agree")  # T_S
    graph: str = "ring"
    gamma: float = not_negative(0.0, "the step must be positive (0: use step_fraction)")  # 0: step_fraction / (L·T_C)
    step_fraction: float = limited(0.9, lambda v: 0 < v < 1, "Theorem 1 needs γ·L·T_C in (0, 1)")
    lost_at: int | None = limited(None, lambda v: v >= 1, "rounds are counted from 1")
    lost_server: int | None = None
    lost_link: list[int] | None = None
    # servers: also values before and after consensus; steps: in the first epochs at each step
    record: str = one_of("summary", "summary", "servers", "steps")

    server_only = frozenset(
        ["servers", "server_steps", "graph", "step_fraction", "lost_at", "lost_server", "lost_link", "record"]
    )
    trial: ClassVar[Trial] = Trial(
        (
            {"servers": 2, "server_steps": 2, "gamma": 0.004},
            {"servers": 3, "server_steps": 1, "gamma": 0.008, "graph": "path"},
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.graph in GRAPHS, "graph", f"unknown{nearest(self.graph, GRAPHS)}")
        network = server_graph(self.servers, self.graph)
        self.require(self.lost_server in (None, *network), "lost_server", "there is no such server")
        known = self.lost_link is None or (len(self.lost_link) == 2 and network.has_edge(*self.lost_link))
        self.require(known, "lost_link", f"the graph '{self.graph}' has no such link")
        for key in ("lost_server", "lost_link"):
            self.require(getattr(self, key) is None or self.lost_at is not None, key, "lost_at must say when")

    def resolve(self, problem: Problem) -> Self:
        clients = len(problem.federation)
        if clients % self.servers:
            raise UserError(f"DFL: servers = {self.servers} does not divide the {clients} clients")
        if problem.quadratics is None:
            self.require(self.gamma > 0, "gamma", "give it: L is known for least squares only")
            return self
        limit = 1 / (problem.quadratics.spectrum()[1] * problem.steps)
        gamma = self.gamma or self.step_fraction * limit
        if gamma >= limit:
            raise UserError(f"DFL: gamma = {gamma:.6g} is not below 1/(L·T_C) = {limit:.6g}, as Theorem 1 requires")
        return replace(self, gamma=gamma)

    def step(self, batches: Batches, t: int) -> float:
        return self.gamma

    def init(self, problem: Problem, w: Params) -> State:
        size = len(problem.federation) // self.servers  # N
        return {"servers": [w] * self.servers, "size": size, "alive": list(range(self.servers))}

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        return clients[np.isin(clients // state["size"], state["alive"])]

    def message(self, state: State, client: int) -> Any:
        return state["servers"][client // state["size"]]

    def server_update(self, state: State, uploads: Uploads, cohort: Cohort) -> State:
        alive, size = state["alive"], state["size"]
        if not alive:
            return state
        if len(cohort.clients) != len(alive) * size:
            raise UserError("DFL: every client takes part in every epoch; participation.clients must be 'all'")
        uploaded = uploads.stack().flatten(stacked=True)  # [M·N, P], by server
        values = [uploaded.view(len(alive), size, -1).mean(1)]  # (4); W [M, P] before each consensus step
        a = self._mixing(alive, cohort.round).to(values[0])
        for _ in range(self.server_steps):
            values.append(a @ values[-1])  # (5)
        servers = list(state["servers"])
        for i, row in zip(alive, values[-1], strict=True):
            servers[i] = servers[i].unflatten(row)
        lost = self.lost_server if cohort.round + 1 == self.lost_at else None
        remaining = [i for i in alive if i != lost]
        return {**state, "servers": servers, "alive": remaining, "acted": alive, "values": torch.stack(values)}

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["servers"][max(client, 0) // state["size"]]

    def _mixing(self, alive: list[int], round: int) -> torch.Tensor:
        lost = tuple(self.lost_link) if self.lost_link and self.lost_at is not None and round >= self.lost_at else None
        return mixing(self.servers, self.graph, tuple(alive), lost)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        q = problem.quadratics
        if q is None:
            return
        acted = state["acted"] if "acted" in state else state["alive"]
        w = torch.stack([state["servers"][i].flatten() for i in acted])  # [M, d]
        held = None
        if len(acted) < self.servers:
            held = torch.tensor([k for k in range(len(problem.federation)) if k // state["size"] in acted])
        yield from server_distances(problem, w, held)
        yield Metric("alive", len(state["alive"]), "server")
        if round == 0:
            a = self._mixing(state["alive"], 0)
            degree = int((a > 0).sum(1).max()) - 1
            facts = dict(zip(("mu", "L"), q.spectrum(), strict=True), gamma=self.gamma, servers=self.servers)
            # messages per server and epoch: to and from its clients, and its neighbours at every consensus step
            facts |= {"client_steps": problem.steps, "messages": 2 * state["size"] + 2 * self.server_steps * degree}
            yield from (Metric(name, value) for name, value in facts.items())
            yield Metric("sigma_A", contraction(a, self.server_steps))
        else:
            before = state["values"][0]
            yield Metric("gap_before", furthest(before, before.mean(0)), "server")
        if self.record != "summary" and round > 0:
            every = self.record == "steps" and round <= DETAILED_EPOCHS
            for step in range(self.server_steps + 1) if every else (0, self.server_steps):
                for server, row in zip(acted, state["values"][step].tolist(), strict=True):
                    for j, value in enumerate(row):
                        yield Metric(f"w{j}", value, "server", group=f"server {server}", step=step)
