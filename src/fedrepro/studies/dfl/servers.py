"""Base of methods with several servers, each with its own clients: client k belongs to server ⌊k / N⌋.

Choices where a paper is silent: A has Metropolis weights, doubly stochastic on any graph; γ is a fraction of
1/(L·T_C), the limit of DFL's Theorem 1, unless it is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Cohort, Metric, Problem, State, limited, not_negative
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.errors import UserError, nearest
from fedrepro.studies.dfl.consensus import GRAPHS, furthest, mixing, server_distances, server_graph


@dataclass(frozen=True)
class ServerMethod(FedAvg):
    lr: float = field(default=1.0, init=False)  # γ below is the step, and it is constant
    decay: float = field(default=1.0, init=False)
    servers: int = limited(5, lambda v: v >= 1, "at least one server is needed")
    graph: str = "ring"
    gamma: float = not_negative(0.0, "the step must be positive (0: use step_fraction)")  # 0: step_fraction / (L·T_C)
    step_fraction: float = limited(0.9, lambda v: 0 < v < 1, "Theorem 1 needs γ·L·T_C in (0, 1)")

    server_only = frozenset(["servers", "graph", "step_fraction"])

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.graph in GRAPHS, "graph", f"unknown{nearest(self.graph, GRAPHS)}")

    def resolve(self, problem: Problem) -> Self:
        name, clients = type(self).__name__, len(problem.federation)
        if clients % self.servers:
            raise UserError(f"{name}: servers = {self.servers} does not divide the {clients} clients")
        if problem.quadratics is None:
            self.require(self.gamma > 0, "gamma", "give it: L is known for least squares only")
            return self
        limit = 1 / (problem.quadratics.spectrum()[1] * problem.steps)
        gamma = self.gamma or self.step_fraction * limit
        if gamma >= limit:
            raise UserError(f"{name}: gamma = {gamma:.6g} is not below 1/(L·T_C) = {limit:.6g}, as Theorem 1 requires")
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

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["servers"][max(client, 0) // state["size"]]

    def gathered(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> tuple[Tensor, Tensor]:
        """The models that the servers sent out [M, P] and those that their clients returned [M, N, P]."""
        alive, size = state["alive"], state["size"]
        if len(cohort.clients) != len(alive) * size:
            name = type(self).__name__
            raise UserError(f"{name}: every client takes part in every epoch; participation.clients must be 'all'")
        uploaded = uploads.stack().flatten(stacked=True)  # [M·N, P], by server
        sent = torch.stack([state["servers"][i].flatten() for i in alive])
        return sent, uploaded.view(len(alive), size, -1)

    def unflattened(self, state: State, rows: Tensor) -> list[Params]:
        """The servers' models, those alive with the values of `rows` [M, P]."""
        servers = list(state["servers"])
        for i, row in zip(state["alive"], rows, strict=True):
            servers[i] = servers[i].unflatten(row)
        return servers

    def mixing(self) -> Tensor:
        """A [M, M] of the whole graph."""
        return mixing(self.servers, self.graph, tuple(range(self.servers)), None)

    def degree(self) -> int:
        """Neighbours of the server with most of them."""
        return max((degree for _, degree in server_graph(self.servers, self.graph).degree), default=0)

    def load(self, size: int) -> float:
        """Vectors that a server with `size` clients sends and receives per round, at most."""
        raise NotImplementedError

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        acted = state["acted"] if "acted" in state else state["alive"]
        w = torch.stack([state["servers"][i].flatten() for i in acted])  # [M, P]
        held = None
        if len(acted) < self.servers:
            held = torch.tensor([k for k in range(len(problem.federation)) if k // state["size"] in acted])
        if problem.quadratics is not None:
            yield from server_distances(problem, w, held)
        yield Metric("gap", furthest(w, w.mean(0)), "server")
        yield Metric("gap_relative", furthest(w, w.mean(0)) / max(w.mean(0).norm().item(), 1e-300), "server")
        if round == 0:
            yield Metric("messages", self.load(state["size"]))
            yield Metric("servers", self.servers)
            yield Metric("client_steps", problem.steps)
