"""TERM-Group: the limits in which it is TERM or FedAvg, and the weights of a group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedrepro.algorithms.term import TERM
from fedrepro.studies.gifair.algorithms.term_group import TERMGroup
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, run
from tests.unit.algorithms.test_fair_baselines import STRATEGIES, same_as_fedavg


@STRATEGIES
def test_a_vanishing_tilt_gives_the_weights_of_fedavg(strategy):
    same_as_fedavg(TERMGroup(lr=0.1, decay=0.9, t=1e-9), 1e-7, strategy, clients=3, sampling="weight")


def test_groups_of_one_device_are_term_where_all_take_part():
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH)
    alone = run(make_task("mlp"), by_seed, plan, TERM(lr=0.1, t=0.5))
    grouped = run(make_task("mlp"), by_seed, plan, TERMGroup(lr=0.1, t=0.5))
    torch.testing.assert_close(alone.w.flatten(), grouped.w.flatten(), rtol=1e-12, atol=1e-14)


def test_devices_of_a_group_weigh_alike():
    groups = ("a", "a", "b", "b", "b", "b")
    federation = replace(federations("mlp", {0: RAGGED})[0], groups=groups)
    found = run(make_task("mlp"), federation, make_plan(1, MINI_BATCH), TERMGroup(lr=0.1, t=0.5)).only
    cohort_like = type("Cohort", (), {"clients": np.array([0, 1, 2])})
    _, tilted = found.algorithm.tilted(found.state, found.state["losses"][:3], cohort_like)
    losses = found.state["losses"].numpy()
    assert tilted.tolist() == pytest.approx([losses[:2].mean(), losses[:2].mean(), losses[2:].mean()], rel=1e-13)
