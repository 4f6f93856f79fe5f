"""DFL's rivals by hand, and their identities with FedAvg and gradient descent.

The four clients of test_dfl: ∇F_0 = w − 2, ∇F_1 = 2w − 2, ∇F_2 = w, ∇F_3 = w − 4; two servers with two clients each,
whose mean gradients are 1.5w − 2 and w − 2. The minimiser of all is 8/5.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.errors import UserError
from fedrepro.studies.dfl.algorithms.decentralised_sgd import DecentralisedSGD
from fedrepro.studies.dfl.algorithms.dfl import DFL
from fedrepro.studies.dfl.algorithms.gradient_tracking import GradientTracking
from fedrepro.studies.dfl.algorithms.hierarchical_fedavg import HierarchicalFedAvg
from tests.builders import RAGGED, federations, make_plan, make_task, permuted, run
from tests.studies.dfl.test_dfl import FOUR, line, servers_of

RIVALS = [DecentralisedSGD, GradientTracking, HierarchicalFedAvg]


def values(found) -> list[float]:
    return servers_of(found)[:, 0].tolist()


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_of_decentralised_sgd(strategy):
    # γ = 0.1, weights ½. From 1, 1: gradients −0.5, −1; (1 + 0.05, 1 + 0.1) = 1.05, 1.1. Mean 1.075; gradients −0.425,
    # −0.9: 1.1175, 1.165.
    found = line(DecentralisedSGD(servers=2, gamma=0.1), rounds=2, steps=1, strategy=strategy)
    assert values(found) == pytest.approx([1.1175, 1.165], rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_of_gradient_tracking(strategy):
    # X = 1, 1; G = Y = −0.5, −1; X = 1.05, 1.1. G = −0.425, −0.9; Y = −0.75 + (0.075, 0.1) = −0.675, −0.65;
    # X = 1.075 + (0.0675, 0.065).
    found = line(GradientTracking(servers=2, gamma=0.1), rounds=2, steps=1, strategy=strategy)
    assert values(found) == pytest.approx([1.1425, 1.14], rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_of_hierarchical_fedavg(strategy):
    # κ₂ = 2: two servers alone, 1.05, 1.1, then 1.05 − 0.1·(1.575 − 2), 1.1 − 0.1·(1.1 − 2) = 1.0925, 1.19, averaged.
    algorithm = HierarchicalFedAvg(servers=2, gamma=0.1, cloud_every=2)
    assert values(line(algorithm, rounds=1, steps=1, strategy=strategy)) == pytest.approx([1.05, 1.1], rel=1e-14)
    assert values(line(algorithm, rounds=2, steps=1, strategy=strategy)) == pytest.approx([1.14125] * 2, rel=1e-14)


@pytest.mark.parametrize(
    ("algorithm", "load"),
    [
        (DFL(servers=4, server_steps=25, graph="ring"), 2 + 2 * 25 * 2),
        (DFL(servers=4, server_steps=1, graph="star"), 2 + 2 * 3),
        (DFL(servers=1, server_steps=25), 8),
        (DecentralisedSGD(servers=4, graph="path"), 2 + 2 * 2),
        (GradientTracking(servers=4, graph="ring"), 2 + 2 * 2 * 2),
        (HierarchicalFedAvg(servers=2, cloud_every=4), 4.5),
        (HierarchicalFedAvg(servers=4, cloud_every=1), 8),  # the cloud, of four servers
    ],
)
def test_vectors_per_round_by_hand(algorithm, load):
    assert line(algorithm).values("messages") == [load]


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RIVALS)
@pytest.mark.parametrize("model", ["linear", "softmax"])
def test_one_server_is_fedavg(make, model):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(4, weights="uniform")
    mine = run(make_task(model), by_seed, plan, make(servers=1, gamma=0.01))
    average = run(make_task(model), by_seed, plan, FedAvg(lr=0.01))
    torch.testing.assert_close(servers_of(mine)[0], average.w.flatten(), rtol=1e-10, atol=1e-12)


def test_a_cloud_in_every_round_is_fedavg_and_dfl_with_full_consensus():
    by_seed, plan = federations("softmax", {0: RAGGED}), make_plan(3, weights="uniform")
    hierarchical, dfl = (
        run(make_task("softmax"), by_seed, plan, algorithm)
        for algorithm in (
            HierarchicalFedAvg(servers=3, gamma=0.01),
            DFL(servers=3, gamma=0.01, graph="complete", server_steps=1),
        )
    )
    average = run(make_task("softmax"), by_seed, plan, FedAvg(lr=0.01))
    for found in (hierarchical, dfl):
        for row in servers_of(found):
            torch.testing.assert_close(row, average.w.flatten(), rtol=1e-10, atol=1e-12)


def test_decentralised_sgd_mixes_before_and_dfl_after_the_step():
    # from W: A·W + (Z − W) against A·Z; the same after one more mixing of the start
    sgd = values(line(DecentralisedSGD(servers=2, gamma=0.1), steps=1))
    dfl = values(line(DFL(servers=2, gamma=0.1, server_steps=1), steps=1))
    assert np.mean(sgd) == pytest.approx(np.mean(dfl), rel=1e-14)
    assert dfl == pytest.approx([np.mean(sgd)] * 2, rel=1e-14)


@pytest.mark.parametrize("graph", ["ring", "path", "star", "complete"])
def test_gradient_tracking_ends_at_the_minimiser_on_every_graph_and_the_others_do_not(graph):
    order = permuted(FOUR, [0, 2, 1, 3])
    tracked = line(GradientTracking(servers=4, graph=graph, step_fraction=0.2), rounds=800, steps=1, federation=order)
    assert values(tracked) == pytest.approx([1.6] * 4, abs=1e-9)
    plain = line(DecentralisedSGD(servers=4, graph=graph, step_fraction=0.2), rounds=800, steps=1, federation=order)
    assert max(abs(v - 1.6) for v in values(plain)) > 1e-2


def test_the_trackers_mean_is_the_mean_gradient():
    found = line(GradientTracking(servers=4, graph="path", gamma=0.05), rounds=7, steps=1)
    before = line(GradientTracking(servers=4, graph="path", gamma=0.05), rounds=6, steps=1)
    x = servers_of(before)[:, 0]
    gradients = torch.tensor([1.0, 2, 1, 1]) * x - torch.tensor([2.0, 2, 0, 4])
    assert found.only.state["tracked"].mean().item() == pytest.approx(gradients.mean().item(), rel=1e-12)


# --- what they refuse -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", RIVALS)
def test_servers_must_divide_the_clients(make):
    with pytest.raises(UserError, match=f"{make.__name__}: servers = 3 does not divide the 4 clients"):
        line(make(servers=3))


def test_a_wrong_value_is_named():
    with pytest.raises(UserError, match="HierarchicalFedAvg: cloud_every = 0: κ₂ must be at least 1"):
        HierarchicalFedAvg(cloud_every=0)
    with pytest.raises(UserError, match="DecentralisedSGD: graph = 'rnig': unknown; did you mean 'ring'"):
        DecentralisedSGD(graph="rnig")
