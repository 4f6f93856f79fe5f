"""The epoch as a linear map: its limit by hand and as the end of a long run, epochs until then, and Lemma 2."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Federation, LocalWork
from fedrepro.studies.dfl import measures
from fedrepro.studies.dfl.algorithms.dfl import DFL
from fedrepro.studies.dfl.epoch_map import contraction_ratio
from tests.builders import federate, make_plan, make_task, run
from tests.studies.dfl.test_dfl import FOUR, line, servers_of


def test_the_limit_of_one_server_by_hand():
    # γ = 0.1, two steps: w ← 0.81w + 0.38 (clients 0), 0.64w + 0.36, 0.81w, 0.81w + 0.76: mean 0.7675w + 0.375.
    found = line(DFL(servers=1, gamma=0.1))
    assert found.values("limit_distance") == pytest.approx([abs(0.375 / 0.2325 - 1.6)], rel=1e-10)
    assert found.values("limit_gap") == pytest.approx([0], abs=1e-12)


def test_one_step_per_epoch_and_full_consensus_have_the_minimiser_as_limit():
    found = line(DFL(servers=2, gamma=0.1, graph="complete", server_steps=1), steps=1)
    assert found.values("limit_distance") == pytest.approx([0], abs=1e-12)


@pytest.mark.parametrize(("graph", "steps"), [("path", 1), ("ring", 3), ("star", 25)])
def test_a_long_run_ends_at_the_limit(graph, steps):
    found = line(DFL(servers=4, gamma=0.1, graph=graph, server_steps=steps), rounds=200, federation=FOUR)
    for measured, limit in (("distance", "limit_distance"), ("distance_mean", "limit_mean"), ("gap", "limit_gap")):
        assert found.values(measured)[-1] == pytest.approx(found.values(limit)[0], abs=1e-12)
    assert found.values("theta")[-1] == pytest.approx(found.values("limit_theta")[0], rel=1e-10)
    assert (servers_of(found) - 1.6).abs().max().item() == pytest.approx(found.values("limit_distance")[0], rel=1e-9)


@pytest.mark.parametrize(("noise", "server_steps"), [(0.0, 2), (2.0, 1)])
def test_epochs_until_the_servers_settle_are_those_of_the_run(noise, server_steps):
    """Points on a line, or about it: then the servers' averages never agree."""
    rng = np.random.default_rng(0)
    x = np.arange(3)[:, None] / 4 + rng.random((3, 40))  # a window per server
    y = 5 * x + 2 + noise * rng.normal(size=x.shape) * np.array([[1], [4], [1]])
    held = federate(*((x[i][:, None].tolist(), y[i].tolist()) for i in range(3)))
    plan = make_plan(3000, LocalWork(steps=5), "uniform", client_metrics="never")
    dfl = DFL(servers=3, server_steps=server_steps, graph="path", step_fraction=0.9, record="epochs")
    found = run(make_task("linear", features=1), Federation(held.train, facts={"w": np.array([5.0, 2.0])}), plan, dfl)
    measured = measures.measure(found.frame.assign(data="synthetic", diverged=False)).set_index("metric")["value"]
    assert math.isinf(found.values("agrees")[0]) == (noise > 0)
    assert found.values("agrees")[0] == measured["rounds_to_agree_before"]
    # the run's measure compares distances from the minimiser, the map's the models, whose way is longer
    assert 0 <= found.values("settles")[0] - measured["rounds_to_settle"] <= 0.1 * measured["rounds_to_settle"]


def test_lemma_2_holds_up_to_1_over_l_and_fails_beyond():
    # H = diag(1, 4): ‖I − ηH‖ = max(|1 − η|, |1 − 4η|) against √(1 − η)
    h = torch.diag(torch.tensor([1.0, 4.0]))[None]
    for eta in np.linspace(0.01, 0.25, 25):
        assert contraction_ratio(h, eta) <= 1
    assert contraction_ratio(h, 0.25) == pytest.approx(0.75 / math.sqrt(0.75), rel=1e-6)
    # Lemma 4 asks for γT_C < 1/μ = 1 only; at 0.6 the map expands: |1 − 2.4| = 1.4
    assert contraction_ratio(h, 0.6) == pytest.approx(1.4 / math.sqrt(0.4), rel=1e-6)
