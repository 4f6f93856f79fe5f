"""Averaging over a graph: named graphs, Metropolis weights, and how fast they contract."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.errors import UserError, nearest

GRAPHS = {
    "complete": nx.complete_graph,
    "path": nx.path_graph,
    "ring": nx.cycle_graph,
    "star": lambda nodes: nx.star_graph(nodes - 1),
}


def server_graph(servers: int, name: str, edges: Sequence[Sequence[int]] | None = None) -> nx.Graph:
    """The named graph on the nodes 0 … servers−1; the name `edges` takes the given ones."""
    graph = nx.empty_graph(servers)
    if name == "edges":
        graph.add_edges_from(map(tuple, edges or []))
    elif servers > 1:
        graph.add_edges_from(GRAPHS[name](servers).edges)
    return graph


def check_graph(servers: int, name: str, edges: Sequence[Sequence[int]] | None) -> nx.Graph:
    """The graph, or a UserError: an unknown name, an edge to nowhere, or not connected (Assumption 1 of DFL)."""
    if name not in {*GRAPHS, "edges"}:
        raise UserError(f"graph = {name!r}: unknown{nearest(name, [*GRAPHS, 'edges'])}")
    for edge in edges or []:
        if len(edge) != 2 or edge[0] == edge[1] or not all(node in range(servers) for node in edge):
            raise UserError(f"edges = {edges}: {edge} does not join two of the servers 0 … {servers - 1}")
    graph = server_graph(servers, name, edges)
    if not nx.is_connected(graph):
        parts = " | ".join(str(sorted(part)) for part in nx.connected_components(graph))
        raise UserError(f"graph is not connected (Assumption 1): the servers fall into {parts}")
    return graph


@lru_cache
def mixing(
    servers: int,
    name: str,
    edges: tuple[tuple[int, int], ...] | None,
    alive: tuple[int, ...],
    lost_link: tuple[int, int] | None,
) -> Tensor:
    """A over the servers that are left, without a lost link; equal arguments give the same tensor."""
    graph = server_graph(servers, name, edges)
    if lost_link:
        graph.remove_edge(*lost_link)
    return metropolis(graph.subgraph(alive))


def metropolis(graph: nx.Graph) -> Tensor:
    """Doubly stochastic A [M, M], nodes in ascending order: a_ij = 1/(1 + max(d_i, d_j)) on edges, the rest of
    each row on the diagonal."""
    place = {node: i for i, node in enumerate(sorted(graph))}
    a = np.zeros((len(place), len(place)))
    for i, j in graph.edges:
        a[place[i], place[j]] = a[place[j], place[i]] = 1 / (1 + max(graph.degree[i], graph.degree[j]))
    np.fill_diagonal(a, 1 - a.sum(axis=1))
    return torch.from_numpy(a)


def furthest(points: Tensor, centre: Tensor) -> float:
    """max_i ‖points[i] − centre‖: [M, d], [d] → a number."""
    return float((points - centre).norm(dim=1).max())


def contraction(mixing: Tensor, steps: int) -> float:
    """σ_A = ‖A^steps − 11ᵀ/M‖, the factor by which `steps` consensus steps shrink disagreement."""
    apart = torch.linalg.matrix_power(mixing, steps) - 1 / len(mixing)
    return float(torch.linalg.matrix_norm(apart, 2))


def server_distances(problem: Problem, w: Tensor, held: Tensor | None) -> Iterator[Metric]:
    """How far the servers w [M, d] of a least-squares problem are from each other, from the minimiser over all clients,
    from that over the clients `held` by them (None: all), and from the truth behind the data; and θ, the largest
    gradient of their clients."""
    everyone, minimiser = problem.quadratics, problem.minimiser
    assert everyone is not None
    assert minimiser is not None
    q = everyone if held is None else everyone.of(held)
    gradients = q.gradients(w.repeat_interleave(len(q.linear) // len(w), 0))
    yield Metric("gap", furthest(w, w.mean(0)), "server")
    yield Metric("distance", furthest(w, minimiser), "server")
    yield Metric("distance_mean", (w.mean(0) - minimiser).norm().item(), "server")
    yield Metric("distance_survivors", furthest(w, minimiser if held is None else q.minimiser()), "server")
    # a step below 1/L only shrinks a quadratic's gradient along local descent: an epoch's largest is its first
    yield Metric("theta", gradients.norm(dim=1).max().item(), "server")
    if "w" in problem.federation.facts:
        truth = torch.as_tensor(problem.federation.facts["w"]).to(w)
        yield Metric("distance_true", furthest(w, truth), "server")
