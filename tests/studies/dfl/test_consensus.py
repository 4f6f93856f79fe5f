"""Graphs of servers and their Metropolis weights, worked by hand for three to five nodes."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.studies.dfl.consensus import GRAPHS, contraction, metropolis, server_graph

T = 1 / 3
Q = 1 / 4
F = 1 / 5

#: a_ij = 1/(1 + max(d_i, d_j)) on edges, the rest of each row on the diagonal
BY_HAND = {
    # degrees 2, 2, 2: a triangle
    ("ring", 3): [[T, T, T], [T, T, T], [T, T, T]],
    # 0–1–2–3–0, all degrees 2
    ("ring", 4): [[T, T, 0, T], [T, T, T, 0], [0, T, T, T], [T, 0, T, T]],
    ("ring", 5): [[T, T, 0, 0, T], [T, T, T, 0, 0], [0, T, T, T, 0], [0, 0, T, T, T], [T, 0, 0, T, T]],
    # degrees 1, 2, 1: both edges have max 2
    ("path", 3): [[2 * T, T, 0], [T, T, T], [0, T, 2 * T]],
    ("path", 4): [[2 * T, T, 0, 0], [T, T, T, 0], [0, T, T, T], [0, 0, T, 2 * T]],
    # degrees 3, 1, 1, 1: every edge 1/4
    ("star", 4): [[Q, Q, Q, Q], [Q, 1 - Q, 0, 0], [Q, 0, 1 - Q, 0], [Q, 0, 0, 1 - Q]],
    ("star", 5): [
        [F, F, F, F, F],
        [F, 1 - F, 0, 0, 0],
        [F, 0, 1 - F, 0, 0],
        [F, 0, 0, 1 - F, 0],
        [F, 0, 0, 0, 1 - F],
    ],
    # degrees M − 1: every entry 1/M
    ("complete", 3): [[T] * 3] * 3,
    ("complete", 5): [[F] * 5] * 5,
}


@pytest.mark.parametrize(("name", "servers"), BY_HAND)
def test_metropolis_weights_by_hand(name, servers):
    expected = torch.tensor(BY_HAND[name, servers], dtype=torch.float64)
    torch.testing.assert_close(metropolis(server_graph(servers, name)), expected, rtol=0, atol=1e-15)


def test_rows_follow_the_nodes_that_are_left():
    # a ring of 4 without node 1 is the path 2–3–0; rows in the order 0, 2, 3
    a = metropolis(server_graph(4, "ring").subgraph([3, 0, 2]))
    expected = [[2 * T, 0, T], [0, 2 * T, T], [T, T, T]]
    torch.testing.assert_close(a, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15)


def test_rows_are_in_the_order_of_the_nodes_numbers():
    # the path 2–0–1, its nodes named in that order: node 0 is in the middle
    a = metropolis(nx.Graph([(2, 0), (0, 1)]))
    expected = [[T, T, T], [T, 2 * T, 0], [T, 0, 2 * T]]
    torch.testing.assert_close(a, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_single_server_averages_with_itself_only(name):
    assert metropolis(server_graph(1, name)).tolist() == [[1]]
    assert contraction(metropolis(server_graph(1, name)), 3) == 0


@given(nodes=st.integers(2, 9), seed=st.integers(0, 10**6), steps=st.integers(1, 40))
def test_mixing_on_any_connected_graph_is_doubly_stochastic_and_keeps_the_mean(nodes, seed, steps):
    rng = np.random.default_rng(seed)
    tree = nx.random_labeled_tree(nodes, seed=seed)
    more = rng.integers(0, nodes, (nodes // 2, 2)).tolist()
    edges = [list(e) for e in tree.edges] + [e for e in more if e[0] != e[1]]
    a = metropolis(nx.Graph(edges))
    assert (a >= 0).all()
    assert torch.equal(a, a.T)
    torch.testing.assert_close(a.sum(1), torch.ones(nodes, dtype=torch.float64), rtol=0, atol=1e-15)
    w = torch.from_numpy(rng.normal(0, 10, (nodes, 3)))
    mixed = w
    for _ in range(steps):
        mixed = a @ mixed
    torch.testing.assert_close(mixed.mean(0), w.mean(0), rtol=0, atol=1e-12)
    apart, before = ((v - w.mean(0)).norm().item() for v in (mixed, w))
    assert apart <= contraction(a, steps) * before + 1e-12


def test_contraction_by_hand():
    # The path of 3 has eigenvalues 1, 2/3, 0; the ring of 4 has 1, 1/3, 1/3, −1/3; the ring of 5 has
    # (1 + 2·cos(2πk/5))/3, the largest below 1 at k = 1.
    assert contraction(metropolis(server_graph(3, "path")), 1) == pytest.approx(2 / 3, abs=1e-12)
    assert contraction(metropolis(server_graph(3, "path")), 5) == pytest.approx((2 / 3) ** 5, abs=1e-12)
    assert contraction(metropolis(server_graph(4, "ring")), 2) == pytest.approx(1 / 9, abs=1e-12)
    slowest = (1 + 2 * math.cos(2 * math.pi / 5)) / 3
    assert contraction(metropolis(server_graph(5, "ring")), 25) == pytest.approx(slowest**25, rel=1e-6)
    assert contraction(metropolis(server_graph(5, "complete")), 1) == pytest.approx(0, abs=1e-15)
