"""FedPer and FedRep by hand, and their limits: without own parameters FedAvg, with one client local training."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedper import FedPer, parted
from fedrepro.algorithms.local import Local
from fedrepro.core.federation import LocalWork
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from tests.builders import MINI_BATCH, RAGGED, federations, make_plan, make_task, run

BOTH = pytest.mark.parametrize("strategy", ["loop", "vmap"])
TWO_STEPS = make_plan(1, LocalWork(steps=2), "uniform")


def close(a: Params, b: Params) -> None:
    assert list(a) == list(b)
    for name, value in a.items():
        torch.testing.assert_close(value, b[name], rtol=1e-12, atol=1e-14)


@BOTH
@pytest.mark.parametrize("head_steps", [0, 1])
def test_a_round_step_by_step(strategy, head_steps):
    task, data = make_task("mlp"), federations("mlp", {0: [4, 4]})[0]
    found = run(task, data, TWO_STEPS, FedPer(lr=0.2, head_steps=head_steps), strategy=strategy).only
    shared, head = (list(part) for part in parted(task, task.start))
    bodies = []
    for k in range(2):
        w = task.start
        for names in ([shared + head] * 2, [head, shared])[head_steps]:
            g = task.gradient(w, data.train.full_batch(k))
            w = Params({name: v - 0.2 * g[name] if name in names else v for name, v in w.items()})
        close(found.local[k], Params({name: w[name] for name in head}))
        bodies.append(w)
    close(found.state["w"], Params({name: (bodies[0][name] + bodies[1][name]) / 2 for name in shared}))
    close(found.algorithm.model(found.state, found.local[1], 1), Params({**found.state["w"], **found.local[1]}))


@BOTH
def test_without_own_parameters_it_is_fedavg(strategy):
    by_seed, plan = federations("softmax", {0: RAGGED}), make_plan(3, MINI_BATCH)
    runs = [run(make_task("softmax"), by_seed, plan, make(lr=0.1), strategy=strategy) for make in (FedPer, FedAvg)]
    close(runs[0].w, runs[1].w)


@BOTH
def test_with_one_client_it_is_local_training(strategy):
    by_seed, plan = federations("mlp", {0: [5]}), make_plan(3, MINI_BATCH)
    runs = [run(make_task("mlp"), by_seed, plan, make(lr=0.1), strategy=strategy).only for make in (FedPer, Local)]
    mine, alone = (r.algorithm.model(r.state, r.local[0], 0) for r in runs)
    for name, value in alone.items():
        torch.testing.assert_close(mine[name], value, rtol=1e-12, atol=1e-14)


def test_with_head_steps_alone_the_shared_part_stays():
    task, data = make_task("mlp"), federations("mlp", {0: [4, 4]})[0]
    found = run(task, data, TWO_STEPS, FedPer(lr=0.2, head_steps=2)).only
    close(found.state["w"], parted(task, task.start)[0])


def test_head_steps_need_a_head():
    with pytest.raises(UserError, match="FedPer: head_steps = 1: the model SoftmaxRegression has no parameters"):
        run(make_task("softmax"), federations("softmax", {0: [4, 4]})[0], TWO_STEPS, FedPer(head_steps=1))
