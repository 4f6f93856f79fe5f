"""FedAvg by hand on one-dimensional least squares and on two-class softmax regression, and its identities.

Least squares, w ∈ ℝ: client 0 holds (x, y) = (1, 2), so F_0 = ½(w − 2)² and ∇F_0 = w − 2; client 1 holds (2, 2)
and (0, 4), so F_1 = ½·½((2w − 2)² + 16) and ∇F_1 = 2w − 2.

Softmax, W ∈ ℝ², b ∈ ℝ²: client 0 holds x = 1 of class 0, client 1 holds x = 2 of class 1. ∇_W = (p − e_y)·x and
∇_b = p − e_y; by symmetry W = (u, −u), b = (v, −v) throughout, and p_0 = σ(2(ux + v)).
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.algorithms.local import Local
from fedrepro.core.federation import LocalWork
from fedrepro.errors import UserError
from tests.builders import FULL_BATCH, RAGGED, federate, federations, make_plan, make_task, params, permuted, run

LINE = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]))
CLASSES = federate(([[1.0]], [0]), ([[2.0]], [1]))
SIGMOID_2, SIGMOID_5 = 0.8807970779778823, 0.9933071490757153


def line(algorithm, rounds=1, steps=2, weights="uniform", w=1.0, **options):
    task = make_task("linear", features=1, bias=False)
    return run(task, LINE, make_plan(rounds, LocalWork(steps=steps), weights), algorithm, w=params(w=[w]), **options)


def softmax(algorithm, steps=2, rounds=1, **options):
    task = make_task("softmax", features=1, outputs=2)
    zero = params(**{"dense.weight": [[0.0], [0.0]], "dense.bias": [0.0, 0.0]})
    return run(task, CLASSES, make_plan(rounds, LocalWork(steps=steps), "uniform"), algorithm, w=zero, **options)


def assert_softmax(w, u, v):
    expected = params(**{"dense.weight": [[u], [-u]], "dense.bias": [v, -v]})
    torch.testing.assert_close(w.flatten(), expected.flatten(), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize(("weights", "expected"), [("uniform", 1.095), ("size", (1.19 + 2 * 1.0) / 3)])
def test_a_round_of_least_squares(weights, expected, strategy):
    # From w = 1 with γ = 0.1. Client 0: 1 − 0.1·(−1) = 1.1; 1.1 − 0.1·(−0.9) = 1.19. Client 1: ∇F_1(1) = 0, stays.
    # Uniform (1.19 + 1)/2; by size (1.19 + 2·1)/3.
    found = line(FedAvg(lr=0.1), weights=weights, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(expected, rel=1e-15)


def test_two_rounds_with_decay():
    # Round 1 ends at 1.095. Round 2 with γ = 0.1·0.5: client 0 contracts 2 − w by 0.95² from 0.905 to 0.8167625;
    # client 1 contracts w − 1 by 0.9² from 0.095 to 0.07695. Mean of 1.1832375 and 1.07695.
    found = line(FedAvg(lr=0.1, decay=0.5), rounds=2)
    assert found.w["w"].item() == pytest.approx((1.1832375 + 1.07695) / 2, rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_softmax(strategy):
    # From 0 with γ = 1: p = (½, ½). Client 0: ∇u = (½ − 1)·1 = −½, ∇v = −½ → u = v = ½. Then 2(u + v) = 2:
    # ∇u = ∇v = σ(2) − 1 → u = v = 3/2 − σ(2). Client 1: ∇u = ½·2 = 1, ∇v = ½ → u = −1, v = −½. Then
    # 2(2u + v) = −5, p_0 = 1 − σ(5): u = −1 − 2(1 − σ(5)), v = −½ − (1 − σ(5)).
    u = ((1.5 - SIGMOID_2) + (-1 - 2 * (1 - SIGMOID_5))) / 2
    v = ((1.5 - SIGMOID_2) + (-0.5 - (1 - SIGMOID_5))) / 2
    assert_softmax(softmax(FedAvg(lr=1.0), strategy=strategy).w, u, v)


def test_a_mini_batch_round():
    """Client 1 has two batches of one sample; in either order the second step starts where the first ended."""
    # (2, 2): ∇ = 2(2w − 2); (0, 4): ∇ = 0. From 1 nothing moves; client 0 takes one step to 1.1.
    task = make_task("linear", features=1, bias=False)
    plan = make_plan(1, LocalWork(epochs=1, batch=1), "size")
    assert run(task, LINE, plan, FedAvg(lr=0.1), w=params(w=[1.0])).w["w"].item() == pytest.approx(3.1 / 3, rel=1e-15)
    # From 0 the step on (2, 2) is 0.1·4, the other is 0: client 1 ends at 0.4 either way, client 0 at 0.2.
    assert run(task, LINE, plan, FedAvg(lr=0.1), w=params(w=[0.0])).w["w"].item() == pytest.approx(1.0 / 3, rel=1e-15)


@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_one_full_batch_step_is_fedsgd(model, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(5, LocalWork(epochs=1))
    average, gradient = (run(make_task(model), by_seed, plan, a(lr=0.2), strategy=strategy) for a in (FedAvg, FedSGD))
    torch.testing.assert_close(average.w.flatten(), gradient.w.flatten(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(average.values("loss"), gradient.values("loss"), rtol=1e-12)


@pytest.mark.parametrize("algorithm", [FedAvg(lr=0.2), FedProx(lr=0.2, mu=1.0), FedSGD(lr=0.2), Local(lr=0.2)])
@pytest.mark.parametrize("weights", ["size", "uniform"])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_numbering_the_clients_otherwise_changes_nothing(model, weights, algorithm):
    federation, plan = federations(model, {0: RAGGED})[0], make_plan(3, FULL_BATCH, weights)
    order = [3, 0, 5, 1, 4, 2]
    task = make_task(model)
    here, there = (run(task, f, plan, algorithm) for f in (federation, permuted(federation, order)))
    torch.testing.assert_close(here.w.flatten(), there.w.flatten(), rtol=0, atol=1e-12)
    here_each, there_each = (r.values("loss", round=3, split="train")[1:] for r in (here, there))
    np.testing.assert_allclose(here_each[order], there_each, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("hyper", "named"),
    [({"lr": 0.0}, "FedAvg: lr = 0.0"), ({"lr": -1.0}, "FedAvg: lr = -1.0"), ({"decay": 1.5}, "FedAvg: decay = 1.5")],
)
def test_a_wrong_value_is_named(hyper, named):
    with pytest.raises(UserError, match=named):
        FedAvg(**hyper)
