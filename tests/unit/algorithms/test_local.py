"""Local training by hand, on the problems of test_fedavg: nothing is shared."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.local import Local
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, permuted, run
from tests.unit.algorithms.test_fedavg import SIGMOID_2, SIGMOID_5, assert_softmax, line, softmax


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_of_least_squares(strategy):
    # From w = 1 with γ = 0.1 client 0 contracts 2 − w by 0.9 per step: after four steps w = 2 − 0.9⁴ = 1.3439.
    # Client 1 is at its minimum.
    found = line(Local(lr=0.1), rounds=2, strategy=strategy)
    assert found.only.local[0]["w"].item() == pytest.approx(1.3439, rel=1e-14)
    assert found.only.local[1]["w"].item() == 1
    assert found.w["w"].item() == pytest.approx((1.3439 + 1) / 2, rel=1e-14)


def test_each_client_is_evaluated_with_its_own_model():
    found = line(Local(lr=0.1), rounds=2)
    # F_0(1.3439) = ½·0.6561², F_1(1) = 4
    assert found.values("loss", round=2, client=0)[0] == pytest.approx(0.5 * 0.6561**2, rel=1e-14)
    assert found.values("loss", round=2, client=1)[0] == pytest.approx(4, rel=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_softmax(strategy):
    found = softmax(Local(lr=1.0), strategy=strategy).only
    assert_softmax(found.local[0], 1.5 - SIGMOID_2, 1.5 - SIGMOID_2)
    assert_softmax(found.local[1], -1 - 2 * (1 - SIGMOID_5), -0.5 - (1 - SIGMOID_5))


def test_a_client_is_as_if_it_were_alone():
    federation = federations("mlp", {0: RAGGED})[0]
    plan = make_plan(3)
    together = run(make_task("mlp"), federation, plan, Local(lr=0.1)).only
    for k in range(len(RAGGED)):
        alone = run(make_task("mlp"), permuted(federation, [k]), plan, FedAvg(lr=0.1))
        torch.testing.assert_close(together.local[k].flatten(), alone.w.flatten(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_client_that_was_never_asked_still_has_the_model_it_started_with(strategy):
    """It is not the average of the others."""
    plan = make_plan(3, MINI_BATCH, clients=1, client_metrics="always")
    found = run(make_task("mlp"), federations("mlp", {0: RAGGED})[0], plan, Local(lr=0.5), strategy=strategy)
    idle = set(range(len(RAGGED))) - set(found.only.local)
    assert idle
    for k in idle:
        losses = found.values("loss", client=k)
        assert losses == pytest.approx([losses[0]] * 4, rel=1e-12)
    for k in found.only.local:
        losses = found.values("loss", client=k)
        assert losses[-1] != losses[0]


def test_a_client_keeps_its_model_while_others_are_asked():
    plan = make_plan(6, MINI_BATCH, clients=2, client_metrics="always")
    found = run(make_task("mlp"), federations("mlp", {0: RAGGED})[0], plan, Local(lr=0.5))
    moves = sum(
        a != pytest.approx(b, rel=1e-12)
        for k in range(len(RAGGED))
        for a, b in zip(found.values("loss", client=k), found.values("loss", client=k)[1:], strict=False)
    )
    assert moves == 6 * 2  # two clients per round
