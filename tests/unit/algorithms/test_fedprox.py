"""FedProx by hand, on the problems of test_fedavg, and its limits in μ."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.core.federation import LocalWork
from fedrepro.errors import UserError
from tests.builders import FULL_BATCH, MINI_BATCH, RAGGED, federations, make_plan, make_task, run
from tests.unit.algorithms.test_fedavg import SIGMOID_2, SIGMOID_5, assert_softmax, line, softmax


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize(("weights", "expected"), [("uniform", 1.09), ("size", (1.18 + 2 * 1.0) / 3)])
def test_a_round_of_least_squares(weights, expected, strategy):
    # μ = 1. Client 0: the first step is FedAvg's, to 1.1; the second goes against (1.1 − 2) + 1·(1.1 − 1) = −0.8,
    # to 1.18. Client 1 stays at 1.
    found = line(FedProx(lr=0.1, mu=1.0), weights=weights, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_softmax(strategy):
    # With γ = μ = 1 the proximal term of the second step cancels the first: FedAvg's second step remains.
    # Client 0: u = v = 1 − σ(2); client 1: u = −2(1 − σ(5)), v = −(1 − σ(5)).
    u = ((1 - SIGMOID_2) - 2 * (1 - SIGMOID_5)) / 2
    v = ((1 - SIGMOID_2) - (1 - SIGMOID_5)) / 2
    assert_softmax(softmax(FedProx(lr=1.0, mu=1.0), strategy=strategy).w, u, v)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("work", [FULL_BATCH, MINI_BATCH], ids=["full batch", "mini-batch"])
@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
def test_without_its_term_it_is_fedavg_bit_for_bit(model, work, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(4, work)
    prox, average = (
        run(make_task(model), by_seed, plan, a, strategy=strategy) for a in (FedProx(lr=0.1, mu=0.0), FedAvg(lr=0.1))
    )
    assert torch.equal(prox.w.flatten(), average.w.flatten())
    assert prox.frame.drop(columns="algorithm").equals(average.frame.drop(columns="algorithm"))


def test_a_heavier_term_keeps_clients_closer_to_the_server():
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(1, LocalWork(epochs=20))
    moved = []
    for mu in (0.0, 1.0, 5.0):
        task = make_task("mlp")
        moved.append((run(task, by_seed, plan, FedProx(lr=0.1, mu=mu)).w - task.start).norm().item())
    assert moved[0] > moved[1] > moved[2] > 0


def test_a_wrong_value_is_named():
    with pytest.raises(UserError, match=r"FedProx: mu = -0\.5"):
        FedProx(mu=-0.5)
    with pytest.raises(UserError, match=r"FedProx: lr = 0\.0"):
        FedProx(lr=0.0)
