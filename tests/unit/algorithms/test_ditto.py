"""Ditto by hand and its limits: λ = 0 is local training plus FedAvg."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.ditto import Ditto
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.local import Local
from fedrepro.core.federation import LocalWork
from fedrepro.errors import UserError
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, params, run
from tests.unit.algorithms.test_fedavg import LINE, line


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_least_squares(strategy):
    # From w = v = 1, γ = 0.1, λ = 2, two steps on ∇F_0 = v − 2: 1 + 0.1 = 1.1, then 1.1 + 0.1 (0.9 − 2 · 0.1) = 1.17.
    # Client 1 is at its minimum with v = w. The server's model is FedAvg's.
    found = line(Ditto(lr=0.1, strength=2.0), rounds=1, strategy=strategy)
    assert found.only.local[0]["w"].item() == pytest.approx(1.17, rel=1e-14)
    assert found.only.local[1]["w"].item() == pytest.approx(1, rel=1e-14)
    assert found.w["w"].item() == pytest.approx((1.19 + 1) / 2, rel=1e-14)


def test_the_second_round_pulls_towards_the_new_average():
    found = line(Ditto(lr=0.1, strength=2.0), rounds=2)
    w = (1.19 + 1) / 2
    v = 1.17
    for _ in range(2):
        v -= 0.1 * ((v - 2) + 2 * (v - w))
    assert found.only.local[0]["w"].item() == pytest.approx(v, rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_without_a_tie_it_is_local_training_plus_fedavg(strategy):
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH)
    found = run(make_task("mlp"), by_seed, plan, Ditto(lr=0.1, strength=0.0), strategy=strategy)
    alone = run(make_task("mlp"), by_seed, plan, Local(lr=0.1), strategy=strategy).only
    average = run(make_task("mlp"), by_seed, plan, FedAvg(lr=0.1), strategy=strategy)
    for k in range(len(RAGGED)):
        torch.testing.assert_close(found.only.local[k].flatten(), alone.local[k].flatten(), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(found.w.flatten(), average.w.flatten(), rtol=1e-12, atol=1e-14)


def test_each_client_is_evaluated_with_its_own_model():
    found = line(Ditto(lr=0.1, strength=2.0), rounds=1)
    assert found.values("loss", round=1, client=0)[0] == pytest.approx(0.5 * 0.83**2, rel=1e-13)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_client_that_was_never_sampled_uses_the_servers_model(strategy):
    plan = make_plan(2, MINI_BATCH, clients=2, sampling="uniform")
    by_seed = federations("mlp", {0: RAGGED})
    found = run(make_task("mlp"), by_seed, plan, Ditto(lr=0.1, strength=0.5), strategy=strategy).only
    away = next(k for k in range(len(RAGGED)) if k not in found.local)
    assert found.algorithm.model(found.state, found.local_of(away), away) is found.state["w"]


def test_a_client_that_was_sampled_uses_its_own_model():
    # One client per round. If client 1 is away in both, its model is the server's; client 0 has its own.
    task, plan = make_task("linear", features=1, bias=False), make_plan(2, LocalWork(steps=1), "uniform", clients=1)
    found = run(task, dict.fromkeys(range(20), LINE), plan, Ditto(lr=0.1, strength=2.0), w=params(w=[1.0]))
    once = [r for r in found.replicates if list(r.local) == [0]]
    assert once
    for r in once:
        # w = 1.1, then 1.19. v = 1.1, then 1.1 + 0.1 · 0.9 = 1.19 (v = w, so the tie does not pull).
        own, away = (r.algorithm.model(r.state, r.local_of(k), k)["w"].item() for k in (0, 1))
        assert own == pytest.approx(1.19, rel=1e-14)
        assert away == pytest.approx(r.state["w"]["w"].item(), rel=0)
        assert r.local_of(1)["w"].item() == 1


def test_a_negative_tie_is_refused():
    with pytest.raises(UserError, match=r"strength = -1\.0: the weight λ must not be negative"):
        Ditto(strength=-1.0)
