"""Averaging over a graph: named graphs, Metropolis weights, and how fast they contract."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from torch import Tensor

GRAPHS = {
    "complete": nx.complete_graph,
    "path": nx.path_graph,
    "ring": nx.cycle_graph,
    "star": lambda nodes: nx.star_graph(nodes - 1),
}


def server_graph(servers: int, name: str, edges: list[list[int]] | None = None) -> nx.Graph:
    """The named graph on the nodes 0 … servers−1; the name `edges` takes the given ones."""
    graph = nx.empty_graph(servers)
    if name == "edges":
        graph.add_edges_from(map(tuple, edges or []))
    elif servers > 1:
        graph.add_edges_from(GRAPHS[name](servers).edges)
    return graph


def metropolis(graph: nx.Graph) -> Tensor:
    """Doubly stochastic A [M, M], nodes in ascending order: a_ij = 1/(1 + max(d_i, d_j)) on edges, the rest of
    each row on the diagonal."""
    place = {node: i for i, node in enumerate(sorted(graph))}
    a = np.zeros((len(place), len(place)))
    for i, j in graph.edges:
        a[place[i], place[j]] = a[place[j], place[i]] = 1 / (1 + max(graph.degree[i], graph.degree[j]))
    np.fill_diagonal(a, 1 - a.sum(axis=1))
    return torch.from_numpy(a)


def contraction(mixing: Tensor, steps: int) -> float:
    """σ_A = ‖A^steps − 11ᵀ/M‖, the factor by which `steps` consensus steps shrink disagreement."""
    apart = torch.linalg.matrix_power(mixing, steps) - 1 / len(mixing)
    return torch.linalg.matrix_norm(apart, 2).item()
