"""FedPD by hand on one-dimensional quadratics, its fixed point, and its two starts."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.fedpd import FedPD
from fedrepro.core.federation import Batches, LocalWork
from fedrepro.errors import UserError
from tests.builders import FULL_BATCH, RAGGED, federate, federations, make_plan, make_task, params, run

#: F_0 = ½(w − 2)², F_1 = ½(2w)² = ½·4·w²: samples (x, y) = (1, 2) and (2, 0)
QUADRATICS = [([[1.0]], [2.0]), ([[2.0]], [0.0])]


def quadratics(algorithm, rounds=1, steps=2, strategy="loop", weights="uniform", **options):
    plan = make_plan(rounds, LocalWork(steps=steps), weights, client_metrics="always", **options)
    task = make_task("linear", features=1, bias=False)
    return run(task, federate(*QUADRATICS), plan, algorithm, w=params(w=[1.0]), strategy=strategy)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_by_hand(strategy):
    # γ = 2, lr = 0.1, two steps from x₀ = 1 with λ = 0.
    # Node 0: h = (1 − 2) = −1, x = 1.1; h = −0.9 + 2·0.1 = −0.7, x = 1.17. λ = 2·0.17 = 0.34; up: 1.17 + 0.17 = 1.34.
    # Node 1: h = 4, x = 0.6; h = 2.4 − 0.8 = 1.6, x = 0.44. λ = −1.12; up: 0.44 − 0.56 = −0.12.
    found = quadratics(FedPD(lr=0.1, gamma=2.0), strategy=strategy)
    assert found.w["w"].item() == pytest.approx(0.61, rel=1e-14)
    assert [found.only.local[k]["dual"].item() for k in (0, 1)] == pytest.approx([0.34, -1.12], rel=1e-14)
    # From 0.61. Node 0: h = −1.39 + 0.34 = −1.05, x = 0.715; h = −1.285 + 0.34 + 0.21 = −0.735, x = 0.7885;
    #   λ = 0.34 + 2·0.1785 = 0.697; up: 0.7885 + 0.3485 = 1.137.
    # Node 1: h = 2.44 − 1.12 = 1.32, x = 0.478; h = 1.912 − 1.12 − 0.264 = 0.528, x = 0.4252;
    #   λ = −1.12 − 0.3696 = −1.4896; up: 0.4252 − 0.7448 = −0.3196.
    found = quadratics(FedPD(lr=0.1, gamma=2.0), rounds=2, strategy=strategy)
    assert found.w["w"].item() == pytest.approx((1.137 - 0.3196) / 2, rel=1e-14)
    assert [found.only.local[k]["dual"].item() for k in (0, 1)] == pytest.approx([0.697, -1.4896], rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_servers_step_shortens_its_move_and_the_duals(strategy):
    # η = ½: λ = ½·2·0.17 = 0.17 and −0.56; up: 1.17 + 0.085 and 0.44 − 0.28; x₀ = 1 + ½(0.7075 − 1).
    found = quadratics(FedPD(lr=0.1, gamma=2.0, server_step=0.5), strategy=strategy)
    assert [found.only.local[k]["dual"].item() for k in (0, 1)] == pytest.approx([0.17, -0.56], rel=1e-14)
    assert found.w["w"].item() == pytest.approx(1 + 0.5 * (0.7075 - 1), rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_authors_start_goes_on_from_the_nodes_own_model(strategy):
    # As above until x = 1.17 and 0.44, where the second round starts (x₀ = 0.61).
    # Node 0, one step: h = −0.83 + 0.34 + 2·0.56 = 0.63, x = 1.107. Node 1: h = 1.76 − 1.12 − 0.34 = 0.3, x = 0.41.
    algorithm = FedPD(lr=0.1, gamma=2.0, start="own")
    own = quadratics(algorithm, strategy=strategy).only
    assert [own.local[k]["x"].item() for k in (0, 1)] == pytest.approx([1.17, 0.44], rel=1e-14)
    ends = []
    for k in (0, 1):
        batches = Batches(round=1, steps=1, whole=own.problem.whole(k))
        ends.append(algorithm.client_update(own.problem.task, params(w=[0.61]), own.local[k], batches)[1]["x"].item())
    assert ends == pytest.approx([1.107, 0.41], rel=1e-14)


def test_at_its_fixed_point_the_duals_are_the_gradients_and_sum_to_zero():
    """The minimiser of the mean, ½·((w − 2) + 4w) = 0, is w = 0.4: there ∇F = (−1.6, 1.6)."""
    found = quadratics(FedPD(lr=0.1, gamma=2.0, record_every=1), rounds=400, steps=5)
    assert found.w["w"].item() == pytest.approx(0.4, rel=1e-12)
    assert [found.only.local[k]["dual"].item() for k in (0, 1)] == pytest.approx([1.6, -1.6], rel=1e-12)
    residual, together = found.values("residual"), found.values("dual_sum")
    assert residual[-1] < 1e-12
    assert together[-1] < 1e-12
    assert residual[0] > 0.1


def test_its_numbers_are_recorded_as_often_as_asked():
    found = quadratics(FedPD(lr=0.1, record_every=3), rounds=7)
    assert found.frame[found.frame["metric"] == "residual"]["round"].tolist() == [3, 6]
    assert len(quadratics(FedPD(lr=0.1), rounds=3).values("residual")) == 0
    # by hand, γ = 2, after the round worked above: x₀ = 0.61, gradients −1.39 and 2.44, duals 0.34 and −1.12
    first = quadratics(FedPD(lr=0.1, gamma=2.0, record_every=1))
    assert first.values("residual")[0] == pytest.approx((1.05 + 1.32) / 2, rel=1e-12)
    assert first.values("relative_residual")[0] == pytest.approx((1.05 + 1.32) / (1.39 + 2.44), rel=1e-12)
    assert first.values("dual_sum")[0] == pytest.approx(0.78 / 1.46, rel=1e-12)
    assert first.values("clipped")[0] == 0


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_fewer_steps_than_batches_are_the_first_of_them(strategy):
    few = quadratics(FedPD(lr=0.1), rounds=3, steps=2, strategy=strategy)
    cut = quadratics(FedPD(lr=0.1, local_steps=2), rounds=3, steps=5, strategy=strategy)
    assert torch.equal(few.w["w"], cut.w["w"])


def test_the_ridge_is_part_of_every_nodes_objective():
    """½·((w − 2) + 4w) + w·r = 0 at w = 2/(5 + 2r): with r = ½ at 1/3."""
    found = quadratics(FedPD(lr=0.1, gamma=2.0, ridge=0.5, record_every=400), rounds=400, steps=5)
    assert found.w["w"].item() == pytest.approx(1 / 3, rel=1e-12)
    assert found.values("residual")[-1] < 1e-12


def test_one_node_with_zero_dual_is_gradient_descent_on_the_proximal_objective():
    federation = federations("softmax", {0: RAGGED})[0]
    task = make_task("softmax")
    found = run(task, federation, make_plan(1, FULL_BATCH), FedPD(lr=0.1, gamma=1.5))
    w = task.start
    for _ in range(2):
        g = task.gradient(w, federation.train.full_batch(0)).add(w - task.start, alpha=1.5)
        w = w.add(g, alpha=-0.1)
    torch.testing.assert_close(found.only.local[0]["dual"], 1.5 * (w - task.start).flatten(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("hyper", "message"),
    [
        ({"lr": 0.0}, r"FedPD: lr = 0\.0"),
        ({"gamma": -1.0}, r"FedPD: gamma = -1\.0"),
        ({"server_step": 0.0}, r"FedPD: server_step = 0\.0"),
        ({"ridge": -1.0}, r"FedPD: ridge = -1\.0"),
        ({"start": "mine"}, r"FedPD: start = 'mine'"),
        ({"local_steps": 0}, r"FedPD: local_steps = 0"),
        ({"record_every": -1}, r"FedPD: record_every = -1"),
    ],
)
def test_a_wrong_value_is_named(hyper, message):
    with pytest.raises(UserError, match=message):
        FedPD(**hyper)
