"""Stochastic approximation: schedules by hand, rounds on the least squares of test_fedavg, identities with FedAvg."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.core.federation import Batches, LocalWork
from fedrepro.errors import UserError
from fedrepro.studies.sa.algorithms.fedavg_matched import FedAvgMatched
from fedrepro.studies.sa.algorithms.fedavg_scheduled import FedAvgScheduled
from fedrepro.studies.sa.algorithms.sa import SA
from fedrepro.studies.sa.algorithms.sa_tracked import SATracked
from tests.builders import FULL_BATCH, MINI_BATCH, RAGGED, federations, make_plan, make_task, params, run
from tests.unit.algorithms.test_fedavg import LINE, line


def at(round: int, t: int, steps: int = 6, per_epoch: int = 2):
    """The local step t of a round of three epochs of two steps."""
    return Batches(round, steps, per_epoch), t


# --- the schedules ----------------------------------------------------------------------------------------------------


def test_n_counts_epochs_and_stays_within_one():
    steps = [SA(lr=0.6).step(*at(round, t)) for round in (0, 1) for t in range(6)]
    expected = [0.6 / n for n in (1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)]
    assert steps == pytest.approx(expected, rel=1e-15)


def test_n_counts_steps():
    steps = [SA(lr=1.0, count="steps", power=0.5).step(*at(round, t)) for round in (0, 2) for t in (0, 5)]
    assert steps == pytest.approx([1, 1 / math.sqrt(6), 1 / math.sqrt(13), 1 / math.sqrt(18)], rel=1e-15)


def test_a_round_has_one_step():
    assert [SA(lr=0.6, count="rounds").step(*at(round, t)) for round in (0, 1, 4) for t in (0, 5)] == pytest.approx(
        [0.6, 0.6, 0.3, 0.3, 0.12, 0.12], rel=1e-15
    )


def test_the_sums_over_the_papers_run():
    """100 rounds of 5 epochs of the 313 steps that a client with 5,000 samples takes: 213, 812 and 15,650."""
    epochs = [(Batches(round, 5, 1), t) for round in range(100) for t in range(5)]
    total = {
        name: 313 * sum(a.step(*when) for when in epochs)
        for name, a in {"sa": SA(), "sa_round": SA(count="rounds"), "constant": FedAvg()}.items()
    }
    assert total == pytest.approx({"sa": 212.6, "sa_round": 811.8, "constant": 15650}, rel=1e-3)


@pytest.mark.parametrize("count", ["epochs", "rounds"])
@pytest.mark.parametrize("shape", ["constant", "cosine"])
def test_a_matched_schedule_has_the_same_sum(count, shape):
    epochs = [(Batches(round, 5, 1), t) for round in range(7) for t in range(5)]
    like = SA(lr=0.3, count=count)
    matched = FedAvgMatched(lr=0.3, count=count, shape=shape, rounds=7)
    steps = [matched.step(*when) for when in epochs]
    assert sum(steps) == pytest.approx(sum(like.step(*when) for when in epochs), rel=1e-12)
    if shape == "constant":
        assert len(set(steps)) == 1
    else:
        assert (np.diff(steps) < 0).all()
        assert steps[0] + steps[-1] == pytest.approx(2 * np.mean(steps), rel=1e-12)


def test_a_matched_schedule_knows_the_length_of_the_run():
    task, plan = make_task("linear", features=1, bias=False), make_plan(4, LocalWork(epochs=2))
    (r,) = run(task, LINE, plan, FedAvgMatched(lr=0.1), w=params(w=[1.0])).replicates
    assert r.algorithm.rounds == 4


def test_a_stepwise_decay_drops_at_half_and_three_quarters_of_the_rounds():
    step = FedAvgScheduled(lr=0.5, rounds=8).step
    by_hand = [0.5] * 4 + [0.05] * 2 + [0.005] * 2
    assert [step(*at(round, t)) for round in range(8) for t in (0, 5)] == pytest.approx(
        np.repeat(by_hand, 2), rel=1e-12
    )


def test_a_cosine_decay_falls_from_epoch_to_epoch_and_is_half_on_average():
    # two rounds of three epochs: ½(1 + cos π(n + ½)/6)
    step = FedAvgScheduled(lr=2.0, shape="cosine", rounds=2).step
    by_hand = [1 + math.cos(math.pi * (n + 0.5) / 6) for n in range(6)]
    assert [step(*at(round, t)) for round in (0, 1) for t in range(6)] == pytest.approx(
        np.repeat(by_hand, 2), rel=1e-12
    )
    assert np.mean(by_hand) == pytest.approx(1)


def test_in_a_single_round_a_stepwise_decay_is_fedavg():
    assert line(FedAvgScheduled(lr=0.1)).w["w"].item() == line(FedAvg(lr=0.1)).w["w"].item()


# --- rounds by hand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_two_rounds_of_least_squares(strategy):
    # Two full-batch steps per round, each an epoch: a = 0.1, 0.05, then 0.1/3, 0.025. Client 0 contracts 2 − w by
    # 1 − a, client 1 contracts w − 1 by 1 − 2a. From 1: client 0 at 2 − 0.9·0.95 = 1.145, client 1 stays; mean 1.0725.
    found = line(SA(lr=0.1), strategy=strategy)
    assert found.w["w"].item() == pytest.approx(1.0725, rel=1e-15)
    first = 2 - 0.9275 * (1 - 0.1 / 3) * 0.975
    second = 1 + 0.0725 * (1 - 0.2 / 3) * 0.95
    assert line(SA(lr=0.1), rounds=2, strategy=strategy).w["w"].item() == pytest.approx((first + second) / 2, rel=1e-14)


def test_two_rounds_of_the_second_schedule():
    # 0.1 twice, as FedAvg: 1.095; then 0.05 twice, which is FedAvg with its step halved every round
    expected = line(FedAvg(lr=0.1, decay=0.5), rounds=2).w["w"].item()
    assert line(SA(lr=0.1, count="rounds"), rounds=2).w["w"].item() == pytest.approx(expected, rel=1e-15)


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("work", [FULL_BATCH, MINI_BATCH], ids=["full batch", "mini-batch"])
@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
@pytest.mark.parametrize("mu", [0.0, 0.25])
def test_without_its_taper_it_is_fedavg_and_fedprox_bit_for_bit(mu, model, work, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(4, work)
    other = FedProx(lr=0.1, mu=mu) if mu else FedAvg(lr=0.1)
    taper, constant = (
        run(make_task(model), by_seed, plan, a, strategy=strategy) for a in (SA(lr=0.1, power=0.0, mu=mu), other)
    )
    assert torch.equal(taper.w.flatten(), constant.w.flatten())
    mine, theirs = (f.frame[f.frame["metric"] != "class_samples"].drop(columns="algorithm") for f in (taper, constant))
    assert mine.reset_index(drop=True).equals(theirs.reset_index(drop=True))


def test_nothing_but_the_step_is_overridden():
    """No copied loop: client and server run FedAvg's own code, and the proximal term is FedProx's."""
    for method in (SA, FedAvgMatched, FedAvgScheduled, SATracked):
        assert method.client_update is FedAvg.client_update
        assert method.server_update is FedAvg.server_update
    assert SA.direction is FedProx.direction
    assert FedAvgMatched.direction is FedAvg.direction


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_papers_four_methods_run_together_as_each_alone(strategy):
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH)
    four = [SA(power=0.0), SA(power=0.0, mu=0.25), SA(), SA(count="rounds")]
    alone = [FedAvg(), FedProx(mu=0.25), SA(), SA(count="rounds")]
    together = run(make_task("mlp"), by_seed, plan, *four, strategy=strategy)
    for replicate, algorithm in zip(together.replicates, alone, strict=True):
        one = run(make_task("mlp"), by_seed, plan, algorithm)
        torch.testing.assert_close(replicate.state["w"].flatten(), one.w.flatten(), rtol=1e-12, atol=1e-14)


def test_one_epoch_per_round_makes_both_schedules_one():
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(4, LocalWork(epochs=1, batch=3))
    one, other = (run(make_task("mlp"), by_seed, plan, a) for a in (SA(lr=0.1), SA(lr=0.1, count="rounds")))
    assert torch.equal(one.w.flatten(), other.w.flatten())


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_grid_of_powers_runs_as_each_alone(strategy):
    by_seed, plan = federations("softmax", {0: RAGGED}), make_plan(3, MINI_BATCH)
    powers = (0.6, 0.76, 1.0)
    grid = run(make_task("softmax"), by_seed, plan, *(SA(power=p) for p in powers), strategy=strategy)
    for p, replicate in zip(powers, grid.replicates, strict=True):
        alone = run(make_task("softmax"), by_seed, plan, SA(power=p))
        torch.testing.assert_close(replicate.state["w"].flatten(), alone.w.flatten(), rtol=1e-12, atol=1e-14)


# --- what it records --------------------------------------------------------------------------------------------------


def test_who_holds_what_is_recorded_before_the_first_round():
    by_seed = federations("softmax", {0: RAGGED})
    found = run(make_task("softmax"), by_seed, make_plan(2, MINI_BATCH), SA()).frame
    found = found[found["metric"] == "class_samples"]
    assert set(found["round"]) == {0}
    assert found.groupby("client")["value"].sum().tolist() == list(RAGGED)
    y = by_seed[0].train.samples.y
    assert found.groupby("step")["value"].sum().tolist() == torch.bincount(y).tolist()


def test_the_odes_right_hand_side_time_and_iterates():
    # ∇F_0 = w − 2, ∇F_1 = 2w − 2: h(w) = 2 − 1.5w. Steps 0.1, 0.05 in the first round, then 0.1/3, 0.025.
    found = line(SATracked(lr=0.1), rounds=2)
    assert found.values("ode_curvature") == pytest.approx([1.5])
    assert found.values("ode_linear") == pytest.approx([2.0])
    assert found.values("ode_time") == pytest.approx([0, 0.15, 0.1 * (1 + 1 / 2 + 1 / 3 + 1 / 4)], rel=1e-14)
    assert found.values("iterate")[:2] == pytest.approx([1, 1.0725], rel=1e-14)


def test_it_converges_to_the_minimiser_of_the_mean_objective():
    """h(w) = 0 at w = 4/3, although the clients' own minimisers are 2 and 1."""
    found = line(SATracked(lr=0.5, power=0.9), rounds=400)
    assert found.w["w"].item() == pytest.approx(4 / 3, abs=2e-3)
    constant = line(FedAvg(lr=0.5), rounds=400).w["w"].item()
    assert abs(constant - 4 / 3) > 0.05  # a constant step ends elsewhere: the clients drift apart within a round


def test_the_ode_is_known_for_least_squares_only():
    with pytest.raises(UserError, match="linear model only"):
        run(make_task("softmax"), federations("softmax", {0: RAGGED}), make_plan(1, MINI_BATCH), SATracked())


@pytest.mark.parametrize(
    ("make", "hyper", "named"),
    [
        (SA, {"power": -0.1}, "SA: power = -0.1"),
        (SA, {"count": "batches"}, "SA: count = 'batches'"),
        (SA, {"mu": -1.0}, "SA: mu = -1.0"),
        (SA, {"lr": 0.0}, "SA: lr = 0.0"),
        (FedAvgMatched, {"count": "steps"}, "FedAvgMatched: count = 'steps'"),
        (FedAvgMatched, {"shape": "line"}, "FedAvgMatched: shape = 'line'"),
    ],
)
def test_a_wrong_value_is_named(make, hyper, named):
    with pytest.raises(UserError, match=named):
        make(**hyper)
