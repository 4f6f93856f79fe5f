"""DFL (Bhattacharyya & Kalaimani, arXiv 2601.01793, Algorithm 1): several servers, each with its own clients.

An epoch is T_C gradient steps at every client (3), each server's average over its clients (4), T_S consensus
steps W ← A·W over the graph of the servers (5), and the broadcast. Client k belongs to server ⌊k / N⌋.

Choices where the paper is silent: A has Metropolis weights, which are doubly stochastic on any graph; γ is a
fraction of 1/(L·T_C), the limit of Theorem 1, unless it is given. The box's inclusive loop bounds would run
T_C + 1 and T_S + 1 steps; the text's T_C and T_S are used. Beyond the paper: after round `lost_at` a server
(with its clients) or a link is lost, and the others go on over what is left of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import networkx as nx
import numpy as np
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Metric
from fedrepro.core.consensus import GRAPHS, contraction, metropolis, server_graph
from fedrepro.errors import UserError, nearest

DETAILED_EPOCHS = 3


@dataclass(frozen=True)
class DFL(FedAvg):
    servers: int = 5
    server_steps: int = 25  # T_S
    graph: str = "ring"
    edges: list[list[int]] | None = None
    gamma: float = 0.0  # 0: step_fraction / (L·T_C)
    step_fraction: float = 0.9
    lost_at: int | None = None
    lost_server: int | None = None
    lost_link: list[int] | None = None
    record: str = "summary"  # servers: their values before and after consensus; steps: in the first epochs, at each

    server_only = frozenset(
        ["servers", "server_steps", "graph", "edges", "step_fraction", "lost_at", "lost_server", "lost_link", "record"]
    )

    def __post_init__(self):
        super().__post_init__()
        self.require(self.servers >= 1, "servers", "at least one server is needed")
        self.require(self.server_steps >= 1, "server_steps", "T_S must be at least 1, or the servers never agree")
        self.require(self.gamma >= 0, "gamma", "the step must be positive (0: use step_fraction)")
        self.require(0 < self.step_fraction < 1, "step_fraction", "Theorem 1 needs γ·L·T_C in (0, 1)")
        self.require(self.record in ("summary", "servers", "steps"), "record", "one of summary, servers, steps")
        if self.graph not in {*GRAPHS, "edges"}:
            raise UserError(f"DFL: graph = {self.graph!r}: unknown{nearest(self.graph, [*GRAPHS, 'edges'])}")
        nodes = range(self.servers)
        for key, links in (
            ("edges", self.edges or []),
            ("lost_link", [self.lost_link] if self.lost_link else []),
        ):
            for link in links:
                valid = len(link) == 2 and link[0] != link[1] and all(node in nodes for node in link)
                self.require(valid, key, f"{link} does not join two of the servers 0 … {self.servers - 1}")
        self.require(self.lost_server is None or self.lost_server in nodes, "lost_server", "there is no such server")
        self.require(self.lost_at is None or self.lost_at >= 1, "lost_at", "rounds are counted from 1")
        for key in ("lost_server", "lost_link"):
            self.require(getattr(self, key) is None or self.lost_at is not None, key, "lost_at must say when")
        network = server_graph(self.servers, self.graph, self.edges)
        if not nx.is_connected(network):
            parts = " | ".join(str(sorted(part)) for part in nx.connected_components(network))
            raise UserError(f"DFL: graph is not connected (Assumption 1): the servers fall into {parts}")
        known = self.lost_link is None or network.has_edge(*self.lost_link)
        self.require(known, "lost_link", f"the graph '{self.graph}' has no such link")

    def resolve(self, problem):
        clients = len(problem.federation)
        if clients % self.servers:
            raise UserError(f"DFL: servers = {self.servers} does not divide the {clients} clients")
        if problem.quadratics is None:
            self.require(self.gamma > 0, "gamma", "give it: L is known for least squares only")
            return replace(self, lr=self.gamma)
        limit = 1 / (problem.quadratics.spectrum()[1] * problem.steps)
        gamma = self.gamma or self.step_fraction * limit
        if gamma >= limit:
            raise UserError(f"DFL: gamma = {gamma:.6g} is not below 1/(L·T_C) = {limit:.6g}, as Theorem 1 requires")
        return replace(self, gamma=gamma, lr=gamma)

    def init(self, problem, w):
        size = len(problem.federation) // self.servers  # N
        return {"servers": [w] * self.servers, "size": size, "alive": list(range(self.servers))}

    def participants(self, state, clients):
        if len(state["alive"]) == self.servers:
            return clients
        return clients[np.isin(clients // state["size"], state["alive"])]

    def message(self, state, client):
        return state["servers"][client // state["size"]]

    def server_update(self, state, uploads, cohort):
        alive, size = state["alive"], state["size"]
        if not alive:
            return state
        if len(cohort.clients) != len(alive) * size:
            raise UserError("DFL: every client takes part in every epoch; participation.clients must be 'all'")
        uploaded = uploads.stack().flatten(stacked=True)  # [M·N, P], by server
        values = [uploaded.view(len(alive), size, -1).mean(1)]  # (4); W [M, P] before each consensus step
        mixing = self._mixing(tuple(alive), cohort.round).to(values[0])
        for _ in range(self.server_steps):
            values.append(mixing @ values[-1])  # (5)
        servers = list(state["servers"])
        for i, row in zip(alive, values[-1], strict=True):
            servers[i] = servers[i].unflatten(row)
        lost = self.lost_server if cohort.round + 1 == self.lost_at else None
        remaining = [i for i in alive if i != lost]
        return {
            **state,
            "servers": servers,
            "alive": remaining,
            "acted": alive,
            "values": torch.stack(values),
        }

    def model(self, state, local, client):
        return state["servers"][max(client, 0) // state["size"]]

    def _mixing(self, alive: tuple[int, ...], round: int) -> torch.Tensor:
        """A over the servers that are left, without a link that is lost."""
        lost = self.lost_at is not None and round >= self.lost_at
        link = tuple(self.lost_link) if self.lost_link and lost else None
        edges = tuple(map(tuple, self.edges)) if self.edges else None
        return _mixing(self.servers, self.graph, edges, alive, link)

    def metrics(self, problem, state, round):
        q = problem.quadratics
        if q is None:
            return
        acted = state.get("acted", state["alive"])
        w = torch.stack([state["servers"][i].flatten() for i in acted])  # [M, d]
        if len(acted) < self.servers:
            q = q.of(torch.tensor([k for k in range(len(problem.federation)) if k // state["size"] in acted]))
        gradients = q.gradients(w.repeat_interleave(state["size"], 0))
        if round == 0:
            mu, smoothness = q.spectrum()
            yield Metric("mu", mu)
            yield Metric("L", smoothness)
            yield Metric("gamma", self.gamma)
            yield Metric("servers", self.servers)
            yield Metric("client_steps", problem.steps)
            # a server's messages in an epoch: to and from its clients, and at every consensus step its neighbours
            degree = int((self._mixing(tuple(state["alive"]), 0) > 0).sum(1).max()) - 1
            yield Metric("messages", 2 * state["size"] + 2 * self.server_steps * degree)
            yield Metric("sigma_A", contraction(self._mixing(tuple(state["alive"]), 0), self.server_steps))
        else:
            before = state["values"][0]
            yield Metric("gap_before", _furthest(before, before.mean(0)), "server")
        yield Metric("gap", _furthest(w, w.mean(0)), "server")
        best = problem.minimiser
        yield Metric("distance", _furthest(w, best), "server")
        yield Metric("distance_mean", (w.mean(0) - best).norm().item(), "server")
        if self.lost_server is not None:
            yield Metric("distance_survivors", _furthest(w, q.minimiser()), "server")
        # γ < 1/L only shrinks a quadratic's gradient along local descent: an epoch's largest is its first.
        yield Metric("theta", gradients.norm(dim=1).max(), "server")
        yield Metric("alive", len(state["alive"]), "server")
        if "w" in problem.federation.facts:
            truth = torch.as_tensor(problem.federation.facts["w"]).to(w)
            yield Metric("distance_true", _furthest(w, truth), "server")
        if self.record != "summary" and round > 0:
            every = self.record == "steps" and round <= DETAILED_EPOCHS
            steps = range(self.server_steps + 1) if every else (0, self.server_steps)
            for step in steps:
                for server, row in zip(acted, state["values"][step].tolist(), strict=True):
                    for j, value in enumerate(row):
                        yield Metric(f"w{j}", value, "server", group=f"server {server}", step=step)


@lru_cache
def _mixing(servers: int, name: str, edges, alive: tuple[int, ...], lost_link) -> torch.Tensor:
    graph = server_graph(servers, name, edges)
    if lost_link:
        graph.remove_edge(*lost_link)
    return metropolis(graph.subgraph(alive))


def _furthest(points: torch.Tensor, centre: torch.Tensor) -> float:
    """max_i ‖points[i] − centre‖."""
    return (points - centre).norm(dim=1).max().item()
