"""Averaging over a graph: named graphs, Metropolis weights and their contraction."""

from collections.abc import Iterator
from functools import lru_cache

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem

GRAPHS = {
    "complete": nx.complete_graph,
    "path": nx.path_graph,
    "ring": nx.cycle_graph,
    "star": lambda nodes: nx.star_graph(nodes - 1),
}


def server_graph(servers: int, name: str) -> nx.Graph:
    """The named graph on the nodes 0 … servers−1; connected, as Assumption 1 of DFL asks."""
    return GRAPHS[name](servers) if servers > 1 else nx.empty_graph(servers)


@lru_cache
def mixing(servers: int, name: str, alive: tuple[int, ...], lost: tuple[int, ...] | None) -> Tensor:
    """A over the remaining servers, without a lost link."""
    graph = server_graph(servers, name)
    if lost:
        graph.remove_edge(*lost)
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
    return (points - centre).norm(dim=1).max().item()


def contraction(mixing: Tensor, steps: int) -> float:
    """σ_A = ‖A^steps − 11ᵀ/M‖, the contraction of disagreement by `steps` consensus steps."""
    apart = torch.linalg.matrix_power(mixing, steps) - 1 / len(mixing)
    return torch.linalg.matrix_norm(apart, 2).item()


def server_distances(problem: Problem, w: Tensor, held: Tensor | None) -> Iterator[Metric]:
    """Largest distances of the servers w [M, d] of a least-squares problem from the minimiser of all, from that over
    the clients `held` by them (None: all), and from the truth; and θ, the largest gradient of their clients."""
    q, minimiser = problem.quadratics, problem.minimiser
    assert q is not None
    assert minimiser is not None
    q, own = (q, minimiser) if held is None else (q.of(held), q.of(held).minimiser())
    gradients = q.gradients(w.repeat_interleave(len(q.linear) // len(w), 0))
    yield Metric("distance", furthest(w, minimiser), "server")
    yield Metric("distance_mean", (w.mean(0) - minimiser).norm().item(), "server")
    yield Metric("distance_survivors", furthest(w, own), "server")
    # with steps below 1/L a quadratic's gradient only shrinks in local descent: the first of an epoch is the largest
    yield Metric("theta", gradients.norm(dim=1).max().item(), "server")
    if "w" in problem.federation.facts:
        truth = torch.as_tensor(problem.federation.facts["w"]).to(w)
        yield Metric("distance_true", furthest(w, truth), "server")
