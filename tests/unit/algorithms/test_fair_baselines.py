"""q-FFL, TERM, FedMGDA+, AFL and Ditto: a round by hand, and limits in which they equal other methods."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from fedrepro.algorithms.afl import AFL, onto_simplex
from fedrepro.algorithms.ditto import Ditto
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedmgda_plus import FedMGDAPlus, min_norm
from fedrepro.algorithms.local import Local
from fedrepro.algorithms.q_ffl import QFFL
from fedrepro.algorithms.term import TERM
from fedrepro.errors import UserError
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, run
from tests.unit.algorithms.test_fedavg import line

STRATEGIES = pytest.mark.parametrize("strategy", ["loop", "vmap"])
# From w = 1 by one step of 0.1 (test_fedavg): w_0 = 1.1 with F_0(1) = 0.5, w_1 = 1 with F_1(1) = 4.


def same_as_fedavg(algorithm, tolerance, strategy="loop", **participation):
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH, **participation)
    mine = run(make_task("mlp"), by_seed, plan, algorithm, strategy=strategy)
    plain = run(make_task("mlp"), by_seed, plan, FedAvg(lr=0.1, decay=0.9), strategy=strategy)
    torch.testing.assert_close(mine.w.flatten(), plain.w.flatten(), rtol=tolerance, atol=tolerance)


def test_the_loss_that_is_sent_is_that_of_the_whole_training_set():
    task, federation = make_task("mlp"), federations("mlp", {0: RAGGED})[0]
    drawn = MINI_BATCH.draw(federation.train, range(len(RAGGED)), 0, np.random.default_rng(0))
    expected, _ = task.evaluate(task.start, federation.train, list(range(len(RAGGED))))
    for k, batches in drawn.items():
        assert task.training_loss(task.start, batches).item() == pytest.approx(expected[k].item(), rel=1e-13)


# --- q-FFL ------------------------------------------------------------------------------------------------------------


@STRATEGIES
def test_a_round_of_q_ffl(strategy):
    # L = 10, Δw = (−1, 0), q = 2: Δ = F²Δw = (−0.25, 0), h = 2F·1 + 10F² = (1 + 2.5, 160).
    found = line(QFFL(lr=0.1, q=2.0), steps=1, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(1 + 0.25 / 163.5, rel=1e-9)


@STRATEGIES
@pytest.mark.parametrize("participation", [{}, {"clients": 3, "sampling": "weight"}])
def test_q_of_0_is_fedavg(strategy, participation):
    same_as_fedavg(QFFL(lr=0.1, decay=0.9, q=0.0), 1e-12, strategy, **participation)


def test_a_negative_q_is_refused():
    with pytest.raises(UserError, match=r"q = -1\.0: must not be negative"):
        QFFL(q=-1.0)


# --- TERM -------------------------------------------------------------------------------------------------------------


@STRATEGIES
def test_a_round_of_term(strategy):
    # t = 1: the weight of client 0 is e^0.5/(e^0.5 + e^4), and it alone moved, by 0.1.
    found = line(TERM(lr=0.1, t=1.0), steps=1, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(1 + 0.1 / (1 + np.exp(3.5)), rel=1e-13)


def test_term_follows_the_sum_over_rounds():
    found = line(TERM(lr=0.1, t=1.0), rounds=2, steps=1)
    w = 1 + 0.1 / (1 + np.exp(3.5))
    first = (np.exp(0.5) + np.exp(4)) / 2
    now = np.array([np.exp(0.5 * (w - 2) ** 2), np.exp((w - 1) ** 2 + 4)])
    mean = (first + now.mean()) / 2
    w = w + (now / 2 / mean) @ np.array([0.1 * (2 - w), -0.1 * (2 * w - 2)])
    assert found.w["w"].item() == pytest.approx(w, rel=1e-13)


@STRATEGIES
def test_a_vanishing_tilt_gives_the_weights_of_fedavg(strategy):
    same_as_fedavg(TERM(lr=0.1, decay=0.9, t=1e-9), 1e-7, strategy, clients=3, sampling="weight")


def test_a_large_tilt_does_not_overflow():
    assert torch.isfinite(line(TERM(lr=0.1, t=500.0), rounds=2).w["w"]).all()


# --- FedMGDA+ ---------------------------------------------------------------------------------------------------------


def brute_force(gram, centre, epsilon, steps=60):
    """The least λᵀGλ over a grid of the simplex."""
    n = len(gram)
    grid = (np.array(p) / steps for p in product(range(steps + 1), repeat=n) if sum(p) == steps)
    return min(x @ gram @ x for x in grid if (np.abs(x - centre) <= epsilon + 1e-12).all())


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_min_norm_point_against_a_search_of_the_simplex(seed, epsilon):
    u = np.random.default_rng(seed).normal(size=(3, 4)) + 0.5
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    centre = np.full(3, 1 / 3)
    found = min_norm(u @ u.T, centre, epsilon)
    assert found.sum() == pytest.approx(1, abs=1e-9)
    assert (found >= -1e-9).all()
    assert (np.abs(found - centre) <= epsilon + 1e-9).all()
    best = brute_force(u @ u.T, centre, epsilon)
    value = found @ u @ u.T @ found
    assert value <= best + 1e-9
    assert value >= best - 0.05


def test_the_min_norm_point_by_hand():
    # Two unit vectors at an angle: the middle. One at 2 against one at 1 (not normalised): (1, 4)/5 of them.
    assert min_norm(np.array([[1, 0.3], [0.3, 1]]), np.full(2, 0.5), 1.0) == pytest.approx([0.5, 0.5], abs=1e-7)
    assert min_norm(np.diag([4.0, 1.0]), np.full(2, 0.5), 1.0) == pytest.approx([0.2, 0.8], abs=1e-7)
    assert min_norm(np.diag([4.0, 1.0]), np.full(2, 0.5), 0.1) == pytest.approx([0.4, 0.6], abs=1e-7)


def test_linearly_dependent_updates_have_a_solution():
    found = min_norm(np.ones((4, 4)), np.full(4, 0.25), 1.0)
    assert found.sum() == pytest.approx(1, abs=1e-9)


def test_a_device_that_did_not_move_stops_the_step():
    # Client 1 stays, u_1 = 0: the least norm is 0, with all weight on it.
    assert line(FedMGDAPlus(lr=0.1), steps=1).w["w"].item() == pytest.approx(1, abs=1e-6)


def test_fixed_weights_and_equal_lengths_are_fedavg():
    found = line(FedMGDAPlus(lr=0.1, epsilon=0.0), steps=1, w=4 / 3)  # ∇F = −2/3 and 2/3
    assert found.w["w"].item() == pytest.approx(4 / 3, rel=1e-14)
    found = line(FedMGDAPlus(lr=0.1, epsilon=0.0), steps=1, w=3.0)  # ∇F = 1 and 4: units 1, 1; mean length 0.25
    assert found.w["w"].item() == pytest.approx(3 - 0.25, rel=1e-14)
    assert line(FedAvg(lr=0.1), steps=1, w=3.0).w["w"].item() == pytest.approx(3 - 0.25, rel=1e-14)


# --- AFL --------------------------------------------------------------------------------------------------------------


def test_the_projection_onto_the_simplex_by_hand():
    assert onto_simplex(torch.tensor([0.5, 0.5]).double()).tolist() == [0.5, 0.5]
    assert onto_simplex(torch.tensor([2.0, 0.0]).double()).tolist() == [1.0, 0.0]
    assert onto_simplex(torch.tensor([1.0, 0.8, -1.0]).double()).tolist() == pytest.approx([0.6, 0.4, 0.0])


@pytest.mark.parametrize("seed", range(10))
def test_the_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    v = torch.from_numpy(rng.normal(size=5))
    found = onto_simplex(v)
    others = torch.from_numpy(rng.dirichlet(np.ones(5), 500))
    assert ((others - v).square().sum(1) >= (found - v).square().sum() - 1e-12).all()


@STRATEGIES
def test_two_rounds_of_afl(strategy):
    # λ = (½, ½): w = 1.05, and λ + 0.1·F = (0.55, 0.9) → less 0.225: (0.325, 0.675).
    found = line(AFL(lr=0.1, gamma=0.1), rounds=2, steps=1, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(1.05 + 0.325 * 0.1 * 0.95 - 0.675 * 0.1 * 0.1, rel=1e-13)


def test_its_mixture_stays_on_the_simplex():
    plan = make_plan(6, MINI_BATCH, clients=3, sampling="weight")
    found = run(make_task("mlp"), federations("mlp", {0: RAGGED}), plan, AFL(lr=0.1, gamma=0.3)).only.state
    assert float(found["lambda"].sum()) == pytest.approx(1, rel=1e-12)
    assert (found["lambda"] >= 0).all()


def test_without_ascent_it_is_fedavg():
    same_as_fedavg(AFL(lr=0.1, decay=0.9, gamma=0.0), 1e-12)


# --- Ditto ------------------------------------------------------------------------------------------------------------


def test_ditto_without_a_tie_is_local_training_where_some_are_sampled():
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(4, MINI_BATCH, clients=3, sampling="weight")
    tied = run(make_task("mlp"), by_seed, plan, Ditto(lr=0.1, decay=0.9, strength=0.0)).only
    alone = run(make_task("mlp"), by_seed, plan, Local(lr=0.1, decay=0.9)).only
    assert list(tied.local) == list(alone.local)
    for k in tied.local:
        torch.testing.assert_close(tied.local[k].flatten(), alone.local[k].flatten(), rtol=1e-12, atol=1e-14)


def test_a_large_loss_weighs_more():
    w = {
        "fedavg": line(FedAvg(lr=0.1), steps=1),
        "q": line(QFFL(lr=0.1, q=1.0), steps=1),
        "term": line(TERM(lr=0.1, t=1.0), steps=1),
    }
    moved = [w[name].w["w"].item() - 1 for name in ("fedavg", "q", "term")]
    # client 1, with the larger loss, is at its minimum: the more weight it has, the less w moves
    assert all(a > b > 0 for a, b in pairwise(moved))
