"""The arm of the authors' code by hand, on the federation of test_fedavg: ∇F_0 = w − 2, ∇F_1 = 2w − 2."""

from __future__ import annotations

import pytest
import torch

from fedrepro.errors import UserError
from fedrepro.studies.gifair.algorithms.gifair_authors import UNSEEN, GIFAIRAuthors
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, run
from tests.unit.algorithms.test_fedavg import line

STRATEGIES = pytest.mark.parametrize("strategy", ["loop", "vmap"])


@STRATEGIES
def test_a_round_with_momentum_by_hand(strategy):
    # λ = 0. Client 0 from 1 by steps of 0.1: g = −1, v = −1, w = 1.1; g = −0.9, v = −0.9 − 0.5 = −1.4, w = 1.24.
    # Client 1 stays at its minimum 1. Losses during training: (0.5 + 0.405)/2 and 4.
    found = line(GIFAIRAuthors(lr=0.1, fraction=0.0), rounds=1, strategy=strategy)
    assert found.w["w"].item() == pytest.approx((1.24 + 1) / 2, rel=1e-14)
    assert found.only.state["losses"].tolist() == pytest.approx([(0.5 + 0.405) / 2, 4.0], rel=1e-13)


def test_ties_are_broken_by_the_order_of_the_devices():
    arm, group, known = GIFAIRAuthors(), torch.arange(4), torch.ones(4, dtype=torch.bool)
    losses = torch.tensor([2.0, 1.0, 2.0, 1.0], dtype=torch.float64)
    assert arm.ranked(losses, known, group).tolist() == [1.0, -3.0, 3.0, -1.0]


def test_devices_that_were_never_sampled_outrank_the_others():
    plan = make_plan(2, MINI_BATCH, clients=2, sampling="uniform")
    state = run(make_task("mlp"), federations("mlp", {0: RAGGED}), plan, GIFAIRAuthors(lr=0.1)).only.state
    unseen = state["losses"] == state["losses"].round()
    assert 2 <= unseen.sum() <= 4
    assert (state["losses"] < UNSEEN).all()
    assert state["rank"][unseen & (state["losses"] > 3)].min() > state["rank"][~unseen].max()


@STRATEGIES
def test_without_momentum_and_lambda_it_is_fedavg(strategy):
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH)
    arms = GIFAIRAuthors(lr=0.1, momentum=0.0, fraction=0.0), GIFAIRGlobal(lr=0.1, fraction=0.0)
    ours, theirs = (run(make_task("mlp"), by_seed, plan, arm, strategy=strategy).w.flatten() for arm in arms)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_exact_ranks_are_refused():
    with pytest.raises(UserError, match="ranks by the losses during training"):
        GIFAIRAuthors(ranks="exact")
