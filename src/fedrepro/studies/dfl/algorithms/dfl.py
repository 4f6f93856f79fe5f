"""DFL (Bhattacharyya & Kalaimani, arXiv 2601.01793, Algorithm 1): several servers, each with its own clients.

An epoch is T_C gradient steps at every client (3), each server's average over its clients (4), T_S consensus
steps W ← A·W over the graph of the servers (5), and the broadcast. Choices where the paper is silent are those of
`ServerMethod`. The box's inclusive loops would run T_C + 1 and T_S + 1 steps; the text's T_C and T_S are used. Beyond
the paper: after round `lost_at` a server (with its clients) or a link is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial, limited, one_of
from fedrepro.core.params import Uploads
from fedrepro.studies.dfl.consensus import contraction, furthest, mixing, server_graph
from fedrepro.studies.dfl.epoch_map import epoch_map
from fedrepro.studies.dfl.servers import ServerMethod

DETAILED_EPOCHS = 3


@dataclass(frozen=True)
class DFL(ServerMethod):
    server_steps: int = limited(25, lambda v: v >= 1, "T_S must be at least 1, or the servers never agree")  # T_S
    lost_at: int | None = limited(None, lambda v: v >= 1, "rounds are counted from 1")
    lost_server: int | None = None
    lost_link: list[int] | None = None
    # servers: also values before and after consensus; steps: in the first epochs at each step; epochs: how many epochs
    # the servers need until they settle and agree, from the map of an epoch
    record: str = one_of("summary", "summary", "servers", "steps", "epochs")

    server_only = ServerMethod.server_only | {"server_steps", "lost_at", "lost_server", "lost_link", "record"}
    label: ClassVar[str] = "DFL"
    trial: ClassVar[Trial] = Trial(
        (
            {"servers": 2, "server_steps": 2, "gamma": 0.004},
            {"servers": 3, "server_steps": 1, "gamma": 0.008, "graph": "path"},
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        network = server_graph(self.servers, self.graph)
        self.require(self.lost_server in (None, *network), "lost_server", "there is no such server")
        known = self.lost_link is None or (len(self.lost_link) == 2 and network.has_edge(*self.lost_link))
        self.require(known, "lost_link", f"the graph '{self.graph}' has no such link")
        for key in ("lost_server", "lost_link"):
            self.require(getattr(self, key) is None or self.lost_at is not None, key, "lost_at must say when")

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        alive = state["alive"]
        if not alive:
            return state
        sent, returned = self.gathered(state, uploads, cohort)
        values = [returned.mean(1)]  # (4); W [M, P] before each consensus step
        a = self._remaining(alive, cohort.round).to(sent)
        for _ in range(self.server_steps):
            values.append(a @ values[-1])  # (5)
        lost = self.lost_server if cohort.round + 1 == self.lost_at else None
        remaining = [i for i in alive if i != lost]
        servers = self.unflattened(state, values[-1])
        drift = (returned - sent[:, None]).norm(dim=-1).max()
        after = {"acted": alive, "values": torch.stack(values), "drift": drift}
        return {**state, **after, "servers": servers, "alive": remaining}

    def load(self, size: int) -> float:
        return 2 * size + 2 * self.server_steps * self.degree()

    def _remaining(self, alive: list[int], round: int) -> torch.Tensor:
        lost = tuple(self.lost_link) if self.lost_link and self.lost_at is not None and round >= self.lost_at else None
        return mixing(self.servers, self.graph, tuple(alive), lost)

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from super().metrics(problem, state, round)
        acted = state["acted"] if "acted" in state else state["alive"]
        yield Metric("alive", len(state["alive"]), "server")
        if round == 0:
            yield from self._facts(problem)
        else:
            before = state["values"][0]
            yield Metric("gap_before", furthest(before, before.mean(0)), "server")
            yield Metric("drift", float(state["drift"]), "server")
        if self.record in ("servers", "steps") and round > 0:
            every = self.record == "steps" and round <= DETAILED_EPOCHS
            for step in range(self.server_steps + 1) if every else (0, self.server_steps):
                for server, row in zip(acted, state["values"][step].tolist(), strict=True):
                    for j, value in enumerate(row):
                        yield Metric(f"w{j}", value, "server", group=f"server {server + 1}", step=step)

    def _facts(self, problem: Problem) -> Iterator[Metric]:
        """Constants of a least-squares problem, and the limit of the run where it is unique."""
        if (q := problem.quadratics) is None:
            return
        mu, smoothness = q.spectrum()
        a = self.mixing()
        facts = {"mu": mu, "L": smoothness, "gamma": self.gamma, "sigma_A": contraction(a, self.server_steps)}
        if self.lost_at is None and mu > 1e-9 * smoothness:
            found = epoch_map(problem, self.servers, self.gamma, torch.linalg.matrix_power(a, self.server_steps))
            facts |= found.facts(problem) | (found.epochs(problem) if self.record == "epochs" else {})
        yield from (Metric(name, value) for name, value in facts.items())
