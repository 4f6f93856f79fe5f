"""The round loop: participation, streams shared by the algorithms of a seed, the log, and divergence."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.algorithms.local import Local
from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Metric, Predictor, Traffic
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.core.metrics import COLUMNS
from fedrepro.core.params import Params
from fedrepro.core.replicates import Participation
from tests.builders import (
    EXPERIMENT,
    MINI_BATCH,
    RAGGED,
    federate,
    federations,
    holdings,
    make_plan,
    make_task,
    params,
    run,
    spying,
)
from tests.crashes import Crash, CrashingAt

#: F_0 = ½(w − 2)² on one sample, F_1 = w² − 2w + 5 on two: gradients w − 2 and 2w − 2
TWO_CLIENTS = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]))
P = np.array([0.1, 0.2, 0.3, 0.4])


def line_task():
    return make_task("linear", features=1, bias=False)


# --- participation ----------------------------------------------------------------------------------------------------


class Fixed:
    """A generator with a fixed choice; it records its calls."""

    def __init__(self, subset):
        self.subset, self.asked = subset, None

    def choice(self, total, size, replace=True, p=None):
        self.asked = (total, size, replace, p)
        return np.array(self.subset)


def draw(participation, monkeypatch=None, subset=None, seed=0, round=0):
    fixed = Fixed(subset)
    if subset is not None:
        monkeypatch.setattr(streams, "generator", lambda *name: fixed)
    return participation.draw(round, P, "test/tiny", seed), fixed.asked


def test_weights_of_the_clients():
    federation = Federation(holdings(federations("linear", {0: [6]})[0].train.samples, [1, 2, 3]))
    np.testing.assert_allclose(Participation(weights="size").shares(federation), [1 / 6, 2 / 6, 3 / 6], rtol=1e-15)
    np.testing.assert_allclose(Participation(weights="uniform").shares(federation), [1 / 3] * 3, rtol=1e-15)


@pytest.mark.parametrize("participation", [Participation(), Participation(4), Participation(9, "weight")])
def test_all_take_part_with_weight_p(participation):
    cohort, _ = draw(participation, round=7)
    assert cohort.round == 7
    assert cohort.clients.tolist() == [0, 1, 2, 3]
    assert cohort.weights.tolist() == P.tolist()


def test_sampling_by_weight_averages_plainly(monkeypatch):
    cohort, (total, size, replace, p) = draw(Participation(2, "weight"), monkeypatch, subset=[3, 1])
    assert (total, size, replace) == (4, 2, False)
    assert p.tolist() == P.tolist()
    assert cohort.clients.tolist() == [1, 3]
    assert cohort.weights.tolist() == [0.5, 0.5]


def test_sampling_by_weight_prefers_heavy_clients():
    """A single client is drawn with probability p_k: 4000 rounds, three standard errors."""
    drawn = [draw(Participation(1, "weight"), round=t)[0].clients[0] for t in range(4000)]
    share = np.bincount(drawn, minlength=4) / len(drawn)
    assert (np.abs(share - P) < 3 * np.sqrt(P * (1 - P) / len(drawn))).all()


def test_uniform_sampling_weighs_as_remark_4_says(monkeypatch):
    """E_S[K/|S| · Σ_{k∈S} p_k θ_k] = Σ p_k θ_k over all C(4, 2) equally likely cohorts."""
    theta = np.array([1.0, -2.0, 5.0, 10.0])
    sums = []
    for subset in itertools.combinations(range(4), 2):
        cohort, (*_, p) = draw(Participation(2, "uniform"), monkeypatch, subset)
        assert p is None  # all clients are equally likely
        np.testing.assert_allclose(cohort.weights, 4 / 2 * P[list(subset)], rtol=1e-15)
        sums.append(cohort.weights @ theta[cohort.clients])
    assert np.mean(sums) == pytest.approx(P @ theta, rel=1e-14)


@pytest.mark.parametrize("sampling", ["weight", "uniform"])
def test_cohorts_have_no_client_twice_and_change_with_round_and_seed(sampling):
    who = Participation(2, sampling)
    cohorts = {(s, t): tuple(draw(who, seed=s, round=t)[0].clients) for s in range(5) for t in range(20)}
    assert all(a < b for a, b in cohorts.values())
    assert len(set(cohorts.values())) == 6
    assert len({tuple(cohorts[s, t] for t in range(20)) for s in range(5)}) == 5
    assert cohorts == {(s, t): tuple(draw(who, seed=s, round=t)[0].clients) for s, t in cohorts}


def test_a_round_with_a_sampled_client_by_hand(monkeypatch):
    """Client 1 of two, p = (1/3, 2/3), one step of 0.1 from w = 0: its model is 0.2.

    Drawn by weight it is taken unchanged; drawn uniformly it has the weight K/|S| · p = 2 · 2/3.
    """
    for sampling, expected in (("weight", 0.2), ("uniform", 4 / 3 * 0.2)):
        plan = make_plan(rounds=1, work=LocalWork(steps=1), clients=1, sampling=sampling)
        with monkeypatch.context() as patch:
            patch.setattr(streams, "generator", lambda *name: Fixed([1]))
            found = run(line_task(), TWO_CLIENTS, plan, FedAvg(lr=0.1), w=params(w=[0.0]))
        assert found.w["w"].item() == pytest.approx(expected, rel=1e-14)


# --- what all algorithms of one seed share ----------------------------------------------------------------------------

ALIKE = [FedAvg(lr=0.1), FedProx(lr=0.3, mu=0.5), FedSGD(lr=0.2), Local(lr=0.1)]


def watched(*algorithms, seed=0, **options):
    task, seen = make_task("softmax"), []
    plan = make_plan(rounds=4, work=MINI_BATCH, **options)
    spies = [spying(a, seen) for a in algorithms]
    run(task, {seed: federations("softmax", {0: RAGGED})[0]}, plan, *spies)
    return seen


def cohorts_of(seen):
    return [s["cohort"].clients.tolist() for s in seen if s["what"] == "server"]


def batches_of(seen):
    return [s["batches"].index.tolist() for s in seen if s["what"] == "client"]


@pytest.mark.parametrize("sampling", ["weight", "uniform"])
def test_all_algorithms_of_a_seed_see_the_same_cohorts_and_batches(sampling):
    first, *others = (watched(a, clients=3, sampling=sampling) for a in ALIKE)
    assert len(cohorts_of(first)) == 4
    for other in others:
        assert cohorts_of(other) == cohorts_of(first)
        assert batches_of(other) == batches_of(first)


def test_so_do_all_settings_of_a_grid():
    alone = watched(FedAvg(lr=0.1), clients=3)
    together = watched(FedAvg(lr=0.1), FedAvg(lr=0.2), FedAvg(lr=0.3), clients=3)
    by_setting = [[s for s in together if s["what"] == "server"][i::3] for i in range(3)]
    for mine in by_setting:
        assert cohorts_of(mine) == cohorts_of(alone)
    updates = [s for s in together if s["what"] == "client"]
    for t in range(4):
        of_round = [s for s in updates if s["round"] == t]
        for i in range(3):
            mine = [s for s in alone if s["round"] == t]
            assert batches_of(of_round[3 * i : 3 * i + 3]) == batches_of(mine)


def test_other_seeds_and_rounds_see_others():
    seen = watched(FedAvg(), seed=0)
    assert batches_of(watched(FedAvg(), seed=1)) != batches_of(seen)
    rounds = [batches_of([s for s in seen if s["round"] == t]) for t in range(4)]
    assert all(a != b for a, b in itertools.combinations(rounds, 2))


def test_all_start_from_the_same_model():
    w = params(w=[3.0])
    plan = make_plan(rounds=1)
    losses = {type(a).__name__: run(line_task(), TWO_CLIENTS, plan, a, w=w).values("loss", round=0) for a in ALIKE}
    # p = (1/3, 2/3); F_0(3) = ½, F_1(3) = 9 − 6 + 5 = 8
    for loss in losses.values():
        assert loss == pytest.approx([0.5 / 3 + 8 * 2 / 3], rel=1e-14)


class Inattentive(Local):
    """A server that reads the first upload only."""

    def server_update(self, state, uploads, cohort):
        return {**state, "w": next(iter(uploads))}


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_clients_that_the_server_ignores_work_all_the_same(strategy):
    """Otherwise their states would be lost, and the next replicate would get their results."""
    deaf, attentive = (
        run(line_task(), TWO_CLIENTS, make_plan(rounds=3), make(lr=0.1), make(lr=0.3), strategy=strategy)
        for make in (Inattentive, Local)
    )
    for mine, theirs in zip(deaf.replicates, attentive.replicates, strict=True):
        assert list(mine.local) == [0, 1]
        for k in (0, 1):
            torch.testing.assert_close(mine.local[k]["w"], theirs.local[k]["w"], rtol=1e-14, atol=0)
        torch.testing.assert_close(mine.state["w"]["w"], theirs.local[0]["w"], rtol=1e-14, atol=0)


# --- what is logged ---------------------------------------------------------------------------------------------------


def test_the_log_by_hand():
    """w stays at 1 if the step is tiny: F_0 = ½, F_1 = 4; squared errors 1 and (0 + 16)/2 = 8; test loss ½·9."""
    federation = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]), test=([[1.0]], [4.0]))
    plan = make_plan(rounds=2, weights="uniform", client_metrics="last")
    frame = run(line_task(), federation, plan, FedSGD(lr=1e-300), w=params(w=[1.0])).frame
    assert list(frame) == list(COLUMNS)
    assert frame["round"].tolist() == sorted(frame["round"])
    rows = {(r.round, r.split, r.client, r.metric): r.value for r in frame.itertuples()}
    for t in range(3):
        assert rows[t, "train", -1, "loss"] == 2.25
        assert rows[t, "train", -1, "mse"] == 4.5
        assert rows[t, "test", -1, "loss"] == 4.5
    # per client only at the end
    assert {k: v for k, v in rows.items() if k[2] >= 0} == {
        (2, "train", 0, "loss"): 0.5,
        (2, "train", 1, "loss"): 4.0,
        (2, "train", 0, "mse"): 1.0,
        (2, "train", 1, "mse"): 8.0,
    }


@pytest.mark.parametrize(("asked", "rounds"), [("never", set()), ("last", {5}), ("always", {0, 2, 4, 5})])
def test_evaluation_every_few_rounds_and_at_the_end(asked, rounds):
    plan = make_plan(rounds=5, evaluate_every=2, client_metrics=asked)
    frame = run(line_task(), TWO_CLIENTS, plan, FedAvg()).frame
    assert set(frame[frame["client"] == -1]["round"]) == {0, 2, 4, 5}
    assert set(frame[frame["client"] >= 0]["round"]) == rounds


def test_a_split_is_weighted_over_those_who_hold_it():
    """Only client 1 has a validation set, so the mean is its own value."""
    train_set = TWO_CLIENTS.train
    federation = Federation(train_set, validation=holdings(train_set.samples, [0, 1]))  # its row is (1, 2)
    found = run(line_task(), federation, make_plan(rounds=1), FedSGD(lr=1e-300), w=params(w=[1.0]))
    assert found.values("loss", split="validation", client=-1).tolist() == [0.5, 0.5]
    assert found.frame[found.frame["split"] == "validation"]["client"].unique().tolist() == [-1, 1]


def test_gradient_steps_are_counted(gradients):
    found = run(make_task("softmax"), federations("softmax", {0: RAGGED})[0], make_plan(2, MINI_BATCH), FedAvg())
    # two rounds × two epochs × (2 + 1 + 3 + 2 + 1 + 2) batches
    assert found.counts == {"gradient_steps": 44, "resumed_from": -1}
    assert gradients.evaluations == 44


@pytest.mark.parametrize("steps", [1, 5])
def test_clients_times_steps_gradients_per_round(gradients, steps):
    run(line_task(), TWO_CLIENTS, make_plan(3, LocalWork(steps=steps)), FedAvg())
    assert gradients.evaluations == 3 * 2 * steps


# --- the same bytes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(strategy):
    federation = federations("softmax", {0: RAGGED})[0]
    plan = make_plan(work=MINI_BATCH, clients=4)

    def once(seed):
        return run(make_task("softmax"), {seed: federation}, plan, FedAvg(), strategy=strategy)

    first, again, other = once(0), once(0), once(1)
    assert first.parquet() == again.parquet()
    assert not np.array_equal(first.values("loss"), other.values("loss"))
    assert first.values("loss", round=0, client=-1) == other.values("loss", round=0, client=-1)


def test_a_seed_does_not_depend_on_those_run_with_it():
    by_seed = federations("softmax", {3: RAGGED, 8: RAGGED[::-1]})
    plan = make_plan(work=MINI_BATCH, clients=4)
    together = run(make_task("softmax"), by_seed, plan, FedAvg()).frame
    alone = run(make_task("softmax"), {8: by_seed[8]}, plan, FedAvg()).frame
    pd.testing.assert_frame_equal(together[together["seed"] == 8].reset_index(drop=True), alone, check_exact=True)


# --- divergence -------------------------------------------------------------------------------------------------------

HUGE = FedAvg(lr=1e200)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_run_that_diverges_is_recorded_and_stops(strategy):
    found = run(line_task(), TWO_CLIENTS, make_plan(rounds=6), HUGE, strategy=strategy)
    diverged = found.frame[found.frame["metric"] == "diverged"]
    assert diverged["value"].tolist() == [1]
    assert diverged["round"].tolist() == [1]  # (1e200)² overflows after two steps
    assert found.frame["round"].max() == 1
    assert found.only.diverged == 1
    assert found.counts["gradient_steps"] == 4  # those of the first round only


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_the_others_go_on_unharmed(strategy):
    task, plan = line_task(), make_plan(rounds=6)
    beside = run(task, TWO_CLIENTS, plan, FedAvg(lr=0.1), HUGE, FedAvg(lr=0.2), strategy=strategy)
    without = run(task, TWO_CLIENTS, plan, FedAvg(lr=0.1), FedAvg(lr=0.2), strategy=strategy)
    assert [r.diverged for r in beside.replicates] == [None, 1, None]
    for mine, theirs in (("setting 0", "setting 0"), ("setting 2", "setting 1")):
        a, b = beside.frame, without.frame
        a, b = (
            f.drop(columns="setting").reset_index(drop=True)
            for f in (a[a["setting"] == mine], b[b["setting"] == theirs])
        )
        pd.testing.assert_frame_equal(a, b, rtol=0 if strategy == "loop" else 1e-12, check_exact=strategy == "loop")
        assert a["round"].max() == 6


def test_a_loss_that_overflows_is_divergence_even_where_the_model_is_finite():
    """w = 1e160 is finite, its squared error is not."""
    found = run(line_task(), TWO_CLIENTS, make_plan(1, LocalWork(steps=1)), FedAvg(lr=1e160), w=params(w=[0.0]))
    assert torch.isfinite(found.w["w"]).all()
    assert found.only.diverged == 1


def test_a_start_that_is_not_a_number_is_divergence_in_round_0():
    found = run(line_task(), TWO_CLIENTS, make_plan(rounds=3), FedAvg(), w=params(w=[float("nan")]))
    assert found.only.diverged == 0
    assert found.counts["gradient_steps"] == 0


def test_divergence_is_seen_in_rounds_without_evaluation():
    found = run(line_task(), TWO_CLIENTS, make_plan(rounds=9, evaluate_every=9), HUGE)
    assert found.only.diverged == 1


# --- one server, one client -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
def test_one_client_is_plain_sgd(model):
    """The reference is torch's optimiser on the client's batches."""
    task, seen = make_task(model), []
    found = run(task, federations(model, {0: [8]})[0], make_plan(3, MINI_BATCH), spying(FedAvg(lr=0.1), seen))

    module = make_task(model).model
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    loss_of = {"linear": torch.nn.MSELoss(), "softmax": torch.nn.CrossEntropyLoss(), "mlp": torch.nn.CrossEntropyLoss()}
    steps = 0
    for update in (s for s in seen if s["what"] == "client"):
        samples = update["batches"].samples
        # eight samples in batches of three: the third batch of an epoch has two rows and one row of padding
        for t, rows in enumerate(update["batches"].index):
            rows = rows[:2] if t % 3 == 2 else rows
            optimiser.zero_grad()
            loss = loss_of[model](module(samples.x[rows]), samples.y[rows])
            (loss / 2 if model == "linear" else loss).backward()
            optimiser.step()
            steps += 1
    assert steps == 3 * 2 * 3
    expected = Params({k: p.detach() for k, p in module.named_parameters()})
    torch.testing.assert_close(found.w.flatten(), expected.flatten(), rtol=1e-12, atol=1e-14)


# --- what a method may ask of the loop --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoExchanges(Algorithm):
    """Every client first sends its mean of y, then its distance from the mean of all."""

    exchanges: ClassVar[int] = 2

    def message(self, state, client):
        return state.get("mean", torch.zeros(()))

    def client_update(self, task, message, local, batches):
        mean = torch.stack([b.y.mean() for b in batches]).mean()
        return (mean if batches.exchange == 0 else mean - message), local

    def server_update(self, state, uploads, cohort):
        values = uploads.stack()
        if "mean" in state and "distances" not in state:
            return {**state, "distances": values}
        return {"w": state["w"], "mean": values.mean()}


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_exchanges_of_a_round_follow_one_another_on_the_same_batches(strategy):
    data = federate(([[0.0]] * 2, [1.0, 3.0]), ([[0.0]] * 2, [5.0, 7.0]))
    plan = make_plan(1, LocalWork(steps=1, batch=2))
    state = run(make_task("linear", 1), data, plan, TwoExchanges(), strategy=strategy).only.state
    assert state["mean"].item() == 4.0
    assert state["distances"].tolist() == [-2.0, 2.0]


@dataclass(frozen=True)
class Noisy(Algorithm):
    """Clients send the sum of their noise."""

    noisy: ClassVar[bool] = True
    factor: float = 1.0

    def client_update(self, task, message, local, batches):
        return self.factor * batches.noise.sum(0), local

    def server_update(self, state, uploads, cohort):
        return {**state, "noise": uploads.stack()}


@pytest.mark.parametrize("work", [LocalWork(steps=3), LocalWork(steps=3, batch=1)])
def test_noise_is_standard_normal_one_for_each_step_and_parameter_and_the_same_for_all_settings(work):
    def noise(rounds: int, seed: int, strategy: str) -> list[torch.Tensor]:
        runs = run(
            make_task("linear", 2), {seed: data}, make_plan(rounds, work), Noisy(), Noisy(2.0), strategy=strategy
        )
        return [r.state["noise"] for r in runs.replicates]

    data = federate(([[0.0, 1.0]] * 4, [1.0] * 4), ([[0.0, 1.0]] * 4, [5.0] * 4))
    one, two = noise(1, 0, "loop")
    assert one.shape == (2, 3)  # clients, parameters
    torch.testing.assert_close(two, 2 * one)  # settings share it
    torch.testing.assert_close(torch.stack(noise(1, 0, "vmap")), torch.stack([one, two]))
    assert not torch.equal(one[0], one[1])
    assert not torch.equal(noise(2, 0, "loop")[0], one)
    assert not torch.equal(noise(1, 1, "loop")[0], one)
    generator = streams.torch_generator(EXPERIMENT, 0, "noise", 0)
    drawn = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(one[0], drawn.sum(0))


@dataclass(frozen=True)
class ClosedForm(Algorithm):
    """The pooled least-squares solution, computed without rounds."""

    iterative: ClassVar[bool] = False

    def init(self, problem, w):
        return {"w": Params(w=problem.minimiser)}


def test_a_method_without_rounds_is_computed_once_and_recorded_as_of_the_last_round(gradients):
    data = federate(([[0.0], [1.0]], [1.0, 3.0]), ([[2.0], [3.0]], [5.0, 7.0]))
    done = run(make_task("linear", 1), data, make_plan(5), ClosedForm())
    torch.testing.assert_close(done.w["w"], torch.tensor([2.0, 1.0], dtype=torch.float64))
    assert set(done.frame["round"]) == {5}
    assert done.counts["gradient_steps"] == gradients.evaluations == 0
    assert done.values("loss", split="train", client=-1) == pytest.approx(0)


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_bytes_of_the_last_round_are_the_models_to_and_from_its_clients(strategy):
    task = make_task("linear")
    plan = make_plan(3, MINI_BATCH, clients=2, sampling="uniform")
    found = run(task, federations("linear", {0: RAGGED, 1: RAGGED}), plan, FedAvg(lr=0.01), strategy=strategy)
    size = 2 * 8 * task.start.flatten().numel()
    for metric in ("bytes_down", "bytes_up"):
        assert found.values(metric).tolist() == [size, size]
        assert found.frame[found.frame["metric"] == metric]["round"].tolist() == [3, 3]


def test_a_survey_comes_before_the_round_and_its_bytes_count():
    @dataclass(frozen=True)
    class Asking(FedAvg):
        def survey(self, problem, state):
            return {**state, "asked": state.get("asked", 0) + 1}, Traffic(100, 10)

    task = make_task("linear")
    found = run(task, federations("linear", {0: RAGGED}), make_plan(3), Asking(lr=0.01))
    plain = run(task, federations("linear", {0: RAGGED}), make_plan(3), FedAvg(lr=0.01))
    assert found.only.state["asked"] == 3
    assert found.values("bytes_down") - plain.values("bytes_down") == 100
    assert found.values("bytes_up") - plain.values("bytes_up") == 10


# --- methods without rounds -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Oracle(Predictor):
    """Has one number per client and no model."""

    shift: float = 0.0

    iterative: ClassVar[bool] = False

    @classmethod
    def groups(cls, runs):
        return [list(range(len(runs)))]

    @classmethod
    def init_all(cls, runs):
        return [{"number": a.shift + i, "together": float(len(runs))} for i, (a, _, _) in enumerate(runs)]

    def assess(self, problem, state, split):
        if split == "train":
            return None
        numbers = np.full(len(problem.federation), state["number"])
        return numbers, 2 * numbers, [Metric("own", state["together"], split)]


def test_a_method_may_initialise_all_runs_at_once_and_assess_what_is_no_model():
    (own,) = federations("linear", {0: (3, 2)}).values()
    own = dataclasses.replace(own, test=own.train)
    found = run(make_task("linear"), {4: own, 9: own}, make_plan(5), Oracle(shift=1.0))
    assert found.values("loss", split="test", client=-1).tolist() == [1.0, 2.0]
    assert found.values("mse", split="test", client=1).tolist() == [2.0, 4.0]
    assert found.values("own").tolist() == [2.0, 2.0]
    assert set(found.frame["round"]) == {5}
    assert not found.frame["split"].eq("train").any()


def test_a_method_without_rounds_goes_on_at_the_next_run(tmp_path):
    computed = []

    @dataclass(frozen=True)
    class Slow(Oracle):
        groups = Predictor.groups

        @classmethod
        def init_all(cls, runs):
            computed.append(len(runs))
            return super().init_all(runs)

    (own,) = federations("linear", {0: (3, 2)}).values()
    own = dataclasses.replace(own, test=own.train)
    by_seed, plan, path = dict.fromkeys(range(4), own), make_plan(5), tmp_path / "job.pt"
    with pytest.raises(Crash):
        run(make_task("linear"), by_seed, plan, Slow(shift=1.0), checkpoint=CrashingAt(path, 3))
    assert computed == [1, 1, 1]
    resumed = run(make_task("linear"), by_seed, plan, Slow(shift=1.0), checkpoint=Checkpoint(path))
    assert computed == [1, 1, 1, 1]
    assert resumed.parquet() == run(make_task("linear"), by_seed, plan, Slow(shift=1.0)).parquet()


def test_a_result_that_is_no_number_has_diverged():
    (own,) = federations("linear", {0: (3, 2)}).values()
    own = dataclasses.replace(own, test=own.train)
    found = run(make_task("linear"), own, make_plan(5), Oracle(shift=float("nan")))
    assert found.only.diverged == 5
