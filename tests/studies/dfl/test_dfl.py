"""DFL by hand, its identities with FedAvg, refused settings, and lost servers and links.

Four clients of least squares in w ∈ ℝ: ∇F_0 = w − 2, ∇F_1 = 2w − 2 (see test_fedavg), ∇F_2 = w from (1, 0) and
∇F_3 = w − 4 from (1, 4). Curvatures 1, 2, 1, 1: L = 2, μ = 1.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.federation import LocalWork
from fedrepro.errors import UserError
from fedrepro.studies.dfl.algorithms.dfl import DETAILED_EPOCHS, DFL
from tests.builders import (
    MINI_BATCH,
    RAGGED,
    federate,
    federations,
    make_plan,
    make_task,
    params,
    permuted,
    run,
    spying,
)
from tests.unit.algorithms.test_fedavg import CLASSES, SIGMOID_2, SIGMOID_5, assert_softmax

FOUR = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]), ([[1.0]], [0.0]), ([[1.0]], [4.0]))


def line(algorithm, rounds=1, steps=2, federation=FOUR, w=1.0, **options):
    task = make_task("linear", features=1, bias=False)
    plan = make_plan(rounds, LocalWork(steps=steps), "uniform")
    return run(task, federation, plan, algorithm, w=params(w=[w]), **options)


def servers_of(found) -> torch.Tensor:
    """The servers' parameters [M, P] at the end."""
    return torch.stack([w.flatten() for w in found.only.state["servers"]])


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_an_epoch_of_two_servers(strategy):
    # γ = 0.1 < 1/(L·T_C) = ¼, from w = 1, two steps. Server 0: clients at 1.19 and 1, mean 1.095. Server 1:
    # 1 → 0.9 → 0.81 and 1 → 1.3 → 1.57, mean 1.19. The Metropolis weight of their link is ½: both get 1.1425.
    found = line(DFL(servers=2, server_steps=1, gamma=0.1, record="servers"), strategy=strategy)
    torch.testing.assert_close(servers_of(found), torch.full((2, 1), 1.1425, dtype=torch.float64), rtol=1e-14, atol=0)
    before, after = found.values("w0", step=0), found.values("w0", step=1)
    assert before == pytest.approx([1.095, 1.19], rel=1e-14)
    assert after == pytest.approx([1.1425, 1.1425], rel=1e-14)


def test_an_epoch_of_two_servers_on_softmax():
    # One client per server: after two steps of γ = 1 the average of the two clients of test_fedavg.
    task = make_task("softmax", features=1, outputs=2)
    zero = params(**{"dense.weight": [[0.0], [0.0]], "dense.bias": [0.0, 0.0]})
    plan = make_plan(1, LocalWork(steps=2), "uniform")
    found = run(task, CLASSES, plan, DFL(servers=2, server_steps=1, gamma=1.0), w=zero)
    u = ((1.5 - SIGMOID_2) + (-1 - 2 * (1 - SIGMOID_5))) / 2
    v = ((1.5 - SIGMOID_2) + (-0.5 - (1 - SIGMOID_5))) / 2
    for w in found.only.state["servers"]:
        assert_softmax(w, u, v)


def test_two_consensus_steps_on_a_path():
    # Three servers with one client each: ∇ = w − 2, w, w − 4; γ = 0.1, one step from 1: 1.1, 0.9, 1.3. Weights of
    # the path 0–1–2: (⅔ ⅓ 0; ⅓ ⅓ ⅓; 0 ⅓ ⅔). Step 1: 3.1/3, 3.3/3, 3.5/3; step 2: 9.5/9, 9.9/9, 10.3/9.
    three = permuted(FOUR, [0, 2, 3])
    found = line(DFL(servers=3, server_steps=2, graph="path", gamma=0.1, record="steps"), steps=1, federation=three)
    expected = [[1.1, 0.9, 1.3], [3.1 / 3, 3.3 / 3, 3.5 / 3], [9.5 / 9, 9.9 / 9, 10.3 / 9]]
    for step, values in enumerate(expected):
        assert found.values("w0", step=step) == pytest.approx(values, rel=1e-14)
    assert servers_of(found)[:, 0].tolist() == pytest.approx(expected[2], rel=1e-14)


def test_the_metrics_by_hand():
    """After the epoch above of two servers with two clients each."""
    found = line(DFL(servers=2, server_steps=1, gamma=0.1))
    start, end = ({m: found.values(m, round=t) for m in found.frame["metric"].unique()} for t in (0, 1))
    assert start["mu"] == pytest.approx([1], rel=1e-14)
    assert start["L"] == pytest.approx([2], rel=1e-14)
    assert start["gamma"] == [0.1]
    assert start["servers"] == [2]
    assert start["client_steps"] == [2]
    assert start["sigma_A"] == pytest.approx([0], abs=1e-15)
    assert start["messages"] == [2 * 2 + 2 * 1 * 1]  # to and from two clients; one neighbour, one consensus step
    # minimiser of the mean: slopes 1 + 2 + 1 + 1 and 2 + 2 + 0 + 4 give 8/5
    assert start["distance"] == pytest.approx([0.6], rel=1e-14)
    assert end["distance"] == pytest.approx([1.6 - 1.1425], rel=1e-13)
    assert end["distance_mean"] == pytest.approx([1.6 - 1.1425], rel=1e-13)
    assert end["gap_before"] == pytest.approx([0.0475], rel=1e-12)  # 1.095 and 1.19 about 1.1425
    assert end["gap"] == pytest.approx([0], abs=1e-15)
    assert start["theta"] == pytest.approx([3], rel=1e-14)  # |∇F_3(1)| = 3
    assert end["theta"] == pytest.approx([4 - 1.1425], rel=1e-14)
    assert end["alive"] == [2]


@pytest.mark.parametrize(("fraction", "gamma"), [(0.9, 0.9 / 4), (0.1, 0.1 / 4)])
def test_a_step_as_a_fraction_of_its_limit(fraction, gamma):
    # L = 2, T_C = 2
    assert line(DFL(servers=2, step_fraction=fraction)).values("gamma") == pytest.approx([gamma], rel=1e-14)


def test_values_at_every_consensus_step_in_the_first_epochs_only():
    found = line(DFL(servers=2, server_steps=3, gamma=0.1, record="steps"), rounds=DETAILED_EPOCHS + 2)
    rows = found.frame[found.frame["metric"] == "w0"]
    steps = rows.groupby("round")["step"].unique().map(list)
    assert steps.loc[DETAILED_EPOCHS] == [0, 1, 2, 3]
    assert steps.loc[DETAILED_EPOCHS + 1] == [0, 3]
    assert set(rows["group"]) == {"server 1", "server 2"}


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("model", ["linear", "softmax"])
def test_one_server_is_fedavg_with_full_batches(model, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(4, weights="uniform")
    dfl = run(make_task(model), by_seed, plan, DFL(servers=1, gamma=0.01), strategy=strategy)
    average = run(make_task(model), by_seed, plan, FedAvg(lr=0.01), strategy=strategy)
    torch.testing.assert_close(servers_of(dfl)[0], average.w.flatten(), rtol=1e-12, atol=1e-14)
    mine, theirs = (r.values("loss", client=-1) for r in (dfl, average))
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize("graph", ["ring", "path", "star", "complete"])
@pytest.mark.parametrize("model", ["linear", "softmax"])
def test_many_consensus_steps_are_one_server_over_all_clients(model, graph):
    by_seed, plan = federations(model, {0: [5, 3, 8, 6, 2, 5, 4, 4]}), make_plan(3, weights="uniform")
    many = run(make_task(model), by_seed, plan, DFL(servers=4, server_steps=300, graph=graph, gamma=0.01))
    one = run(make_task(model), by_seed, plan, DFL(servers=1, gamma=0.01))
    for row in servers_of(many):
        torch.testing.assert_close(row, servers_of(one)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("graph", ["ring", "path", "star", "complete"])
def test_consensus_keeps_the_servers_mean(graph):
    by_seed, plan = federations("linear", {0: [4] * 10}), make_plan(5, weights="uniform")
    found = run(make_task("linear"), by_seed, plan, DFL(servers=5, server_steps=7, graph=graph, record="steps"))
    values = found.only.state["values"]  # [T_S + 1, M, P] of the last epoch
    assert values.shape == (8, 5, 4)
    assert (values[0] - values[0].mean(0)).abs().max() > 1e-3
    torch.testing.assert_close(values.mean(1), values[0].mean(0).expand(8, 4), rtol=0, atol=1e-12)


def test_a_client_gets_messages_from_its_own_server_only():
    seen = []
    line(spying(DFL(servers=2, server_steps=1, graph="path", gamma=0.1), seen), rounds=2)
    messages = [s["message"]["w"].item() for s in seen if s["what"] == "client"]
    assert messages[:4] == [1, 1, 1, 1]
    assert messages[4:] == pytest.approx([1.1425] * 4, rel=1e-14)


# --- what it refuses, by name -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hyper", "said"),
    [
        ({"servers": 0}, "servers = 0"),
        ({"server_steps": 0}, "server_steps = 0: T_S must be at least 1"),
        ({"gamma": -0.1}, r"gamma = -0\.1"),
        ({"step_fraction": 1.0}, r"step_fraction = 1\.0: Theorem 1 needs γ·L·T_C in \(0, 1\)"),
        ({"step_fraction": 0.0}, r"step_fraction = 0\.0"),
        ({"record": "all"}, "record = 'all'"),
        ({"graph": "rnig"}, "graph = 'rnig': unknown; did you mean 'ring'"),
        ({"servers": 5, "lost_at": 3, "lost_link": [0, 2]}, r"lost_link = \[0, 2\]: the graph 'ring' has no such link"),
        ({"servers": 5, "lost_at": 3, "lost_link": [0, 7]}, r"lost_link .* the graph .ring. has no such link"),
        ({"servers": 5, "lost_at": 3, "lost_server": 5}, "lost_server = 5: there is no such server"),
        ({"lost_at": 0, "lost_server": 1}, "lost_at = 0"),
        ({"lost_server": 1}, "lost_server = 1: lost_at must say when"),
        ({"lost_link": [0, 1]}, r"lost_link = \[0, 1\]: lost_at must say when"),
    ],
)
def test_a_wrong_value_is_named(hyper, said):
    with pytest.raises(UserError, match=f"DFL: .*{said}"):
        DFL(**hyper)


def test_servers_must_divide_the_clients():
    with pytest.raises(UserError, match="DFL: servers = 3 does not divide the 4 clients"):
        line(DFL(servers=3))


@pytest.mark.parametrize("gamma", [0.25, 0.3])
def test_a_step_at_the_limit_or_beyond_is_refused(gamma):
    # 1/(L·T_C) = 1/(2·2); a single step allows twice as much
    with pytest.raises(UserError, match=rf"gamma = {gamma} is not below 1/\(L·T_C\) = 0\.25"):
        line(DFL(servers=2, gamma=gamma))
    line(DFL(servers=2, gamma=gamma), steps=1)


def test_a_model_without_a_known_curvature_needs_a_step():
    with pytest.raises(UserError, match=r"gamma = 0\.0: give it: L is known for least squares only"):
        run(make_task("softmax"), federations("softmax", {0: RAGGED}), make_plan(1), DFL(servers=2))


def test_sampling_clients_is_refused():
    plan = make_plan(1, MINI_BATCH, clients=3)
    with pytest.raises(UserError, match=r"participation\.clients must be 'all'"):
        run(make_task("softmax"), federations("softmax", {0: RAGGED}), plan, DFL(servers=2, gamma=0.1))


# --- faults -----------------------------------------------------------------------------------------------------------

#: with one local step, an epoch is gradient descent on the mean, so the limit is the minimiser
LONG = {"rounds": 150, "steps": 1}


def minimiser(*clients: int) -> float:
    curvature, slope = np.array([1.0, 2, 1, 1, 1, 1]), np.array([2.0, 2, 0, 4, -3, 7])
    return slope[list(clients)].sum() / curvature[list(clients)].sum()


SIX = federate(
    ([[1.0]], [2.0]),
    ([[2.0], [0.0]], [2.0, 4.0]),
    ([[1.0]], [0.0]),
    ([[1.0]], [4.0]),
    ([[1.0]], [-3.0]),
    ([[1.0]], [7.0]),
)


def test_without_a_fault_all_servers_reach_the_minimiser_of_all_clients():
    found = line(DFL(servers=3, server_steps=50, step_fraction=0.5), federation=SIX, **LONG)
    assert servers_of(found)[:, 0].tolist() == pytest.approx([minimiser(*range(6))] * 3, abs=1e-9)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_after_a_server_is_lost_its_clients_stop_and_the_others_go_on_to_their_own_minimiser(gradients, strategy):
    seen = []
    dfl = DFL(servers=3, server_steps=50, step_fraction=0.5, lost_at=10, lost_server=1)
    found = line(spying(dfl, seen), federation=SIX, strategy=strategy, **LONG)
    cohorts = {s["round"]: s["cohort"].clients.tolist() for s in seen if s["what"] == "server"}
    assert cohorts[9] == [0, 1, 2, 3, 4, 5]  # the tenth epoch is the last one of server 1
    assert all(cohorts[t] == [0, 1, 4, 5] for t in range(10, 150))
    assert gradients.evaluations == found.counts["gradient_steps"] == 10 * 6 + 140 * 4

    zero, one, two = servers_of(found)[:, 0].tolist()
    assert [zero, two] == pytest.approx([minimiser(0, 1, 4, 5)] * 2, abs=1e-9)
    frozen = line(DFL(servers=3, server_steps=50, step_fraction=0.5), federation=SIX, rounds=10, steps=1)
    assert one == pytest.approx(servers_of(frozen)[1, 0].item(), rel=1e-12)
    assert found.values("distance_survivors")[-1] < 1e-9
    assert found.values("distance")[-1] == pytest.approx(abs(minimiser(0, 1, 4, 5) - minimiser(*range(6))), abs=1e-9)
    assert found.values("alive")[[0, 9, 10, -1]].tolist() == [3, 3, 2, 2]


def test_a_single_server_that_is_lost_stops_everything(gradients):
    found = line(DFL(servers=1, step_fraction=0.5, lost_at=4, lost_server=0), federation=SIX, rounds=20, steps=1)
    distance = found.values("distance")
    assert len(distance) == 21
    assert (np.diff(distance[:5]) < 0).all()
    assert (distance[4:] == distance[4]).all()
    assert distance[4] > 1e-3
    assert gradients.evaluations == 4 * 6
    assert found.values("alive")[[3, 4, 20]].tolist() == [1, 0, 0]
    assert found.only.diverged is None


def test_a_run_whose_server_is_lost_leaves_other_runs_unchanged():
    lost, sound = (DFL(servers=1, step_fraction=0.5, lost_at=2, lost_server=0), DFL(servers=2, step_fraction=0.5))
    for strategy in ("loop", "vmap"):
        task, plan = make_task("linear", features=1, bias=False), make_plan(6, LocalWork(steps=1), "uniform")
        together = run(task, SIX, plan, lost, sound, w=params(w=[1.0]), strategy=strategy)
        alone = run(task, SIX, plan, sound, w=params(w=[1.0]), strategy=strategy)
        mine = together.values("distance", setting="setting 1")
        np.testing.assert_allclose(mine, alone.values("distance"), rtol=1e-12)
        assert len(together.values("distance", setting="setting 0")) == 7


def test_a_ring_that_loses_a_link_is_a_path_and_still_converges():
    seen = []
    dfl = DFL(servers=3, server_steps=50, step_fraction=0.5, lost_at=5, lost_link=[2, 0])
    found = line(spying(dfl, seen), federation=SIX, **LONG)
    assert all(len(s["cohort"].clients) == 6 for s in seen if s["what"] == "server")
    assert servers_of(found)[:, 0].tolist() == pytest.approx([minimiser(*range(6))] * 3, abs=1e-9)


def test_a_lost_link_is_used_no_more():
    # T_S = 1 on a ring of three (a triangle, all weights ⅓) agrees at once; on the path 0–1–2 that is left it does not.
    dfl = DFL(servers=3, server_steps=1, step_fraction=0.5, lost_at=2, lost_link=[0, 2])
    gap = line(dfl, rounds=4, steps=1, federation=SIX).values("gap")
    assert gap[:3] == pytest.approx([0, 0, 0], abs=1e-14)
    assert (gap[3:] > 1e-3).all()


def test_mini_batches_do_not_depend_on_the_lost_server():
    """The remaining clients see the same batches as without the loss."""
    seen = {}
    for name, fault in (("whole", {}), ("lost", {"lost_at": 1, "lost_server": 0})):
        seen[name] = []
        algorithm = spying(DFL(servers=3, gamma=0.01, **fault), seen[name])
        run(make_task("softmax"), federations("softmax", {0: RAGGED}), make_plan(3, MINI_BATCH), algorithm)
    whole, lost = (
        [s["batches"].index.tolist() for s in seen[name] if s["what"] == "client" and s["round"] == 2] for name in seen
    )
    assert lost == whole[2:]


def test_settings_that_lose_different_servers_run_together():
    some = [DFL(servers=3, gamma=0.01, lost_at=1, lost_server=i) for i in range(3)]
    by_seed, plan = federations("softmax", {0: RAGGED}), make_plan(3, MINI_BATCH)
    together = run(make_task("softmax"), by_seed, plan, *some)
    for i, dfl in enumerate(some):
        alone = run(make_task("softmax"), by_seed, plan, dfl)
        np.testing.assert_array_equal(together.values("loss", setting=f"setting {i}"), alone.values("loss"))
