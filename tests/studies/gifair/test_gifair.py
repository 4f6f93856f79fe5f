"""GIFAIR-FL: Lemma 3 as an identity, ranks by hand and by definition, λ_max, its limits, and its messages.

The federation of test_fedavg (two clients, w ∈ ℝ): ∇F_0 = w − 2 and ∇F_1 = 2w − 2, F_0 = ½(w − 2)², F_1 = (w − 1)² + 4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core import parts
from fedrepro.errors import UserError
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal, held, lambda_max
from fedrepro.studies.gifair.algorithms.gifair_per import GIFAIRPer
from fedrepro.studies.gifair.ranks import client_ranks, group_ranks
from tests.builders import FULL_BATCH, MINI_BATCH, RAGGED, federations, make_plan, make_problem, make_task, run
from tests.unit.algorithms.test_fedavg import line

GROUPS = ("a", "b", "a", "c", "b", "a")
STRATEGIES = pytest.mark.parametrize("strategy", ["loop", "vmap"])


def problem(groups=(), weights="size"):
    federation = replace(federations("softmax", {0: RAGGED})[0], groups=groups)
    return make_problem(make_task("softmax"), federation, make_plan(weights=weights))


# --- Lemma 3 and the ranks --------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 5))
def test_lemma_3_holds_to_1e10_for_random_losses_and_groups(seed, clients, groups):
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(min(groups, clients)), rng.integers(0, groups, clients)])[:clients]
    group = np.unique(group, return_inverse=True)[1]
    d, size = group.max() + 1, np.bincount(group)
    p = rng.dirichlet(np.ones(clients))
    losses = rng.choice([rng.exponential(size=clients), rng.integers(0, 3, clients)])  # the second has ties
    strength = rng.random()
    means = np.array([losses[group == i].mean() for i in range(d)])
    penalty = sum(abs(means[i] - means[j]) for i in range(d) for j in range(i + 1, d))
    rank = client_ranks(torch.from_numpy(losses).double(), torch.ones(clients, dtype=bool), torch.from_numpy(group))
    weighed = (p * (1 + strength / (p * size[group]) * rank.numpy()) * losses).sum()
    assert weighed == pytest.approx((p * losses).sum() + strength * penalty, rel=1e-10, abs=1e-10)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=9, unique=True))
def test_ranks_without_ties_are_every_second_number_between_the_ends(losses):
    d = len(losses)
    ranks = group_ranks(torch.tensor(losses, dtype=torch.float64))
    assert sorted(ranks.tolist()) == list(range(-d + 1, d, 2))
    assert ranks[int(np.argmax(losses))] == d - 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_ranks_with_ties_are_the_sum_of_signs(losses):
    expected = [sum(np.sign(a - b) for b in losses) for a in losses]
    assert group_ranks(torch.tensor(losses, dtype=torch.float64)).tolist() == expected


def test_the_example_of_the_thesis():
    # Example 2.3.1: four groups of ten with falling losses have r = 3, 1, −1, −3.
    losses = torch.tensor([4.0, 3.0, 2.0, 1.0], dtype=torch.float64).repeat_interleave(10)
    group = torch.arange(4).repeat_interleave(10)
    rank = client_ranks(losses, torch.ones(40, dtype=bool), group)
    assert rank.tolist() == [3.0] * 10 + [1.0] * 10 + [-1.0] * 10 + [-3.0] * 10


def test_a_group_of_which_nothing_is_known_ties_with_all():
    losses, group = torch.tensor([1.0, 9.0, 2.0], dtype=torch.float64), torch.tensor([0, 1, 2])
    rank = client_ranks(losses, torch.tensor([True, False, True]), group)
    assert rank.tolist() == [-1.0, 0.0, 1.0]


# --- λ_max ------------------------------------------------------------------------------------------------------------


def test_lambda_max_by_hand():
    # 29 samples. Groups: a holds clients of 5, 8, 5, b of 3, 2, c of 6. p_k|A| is least for the client of 2: 2/29 · 2.
    assert lambda_max(problem(GROUPS)) == pytest.approx(2 * 2 / 29 / 2, rel=1e-14)
    assert lambda_max(problem()) == pytest.approx(2 / 29 / 5, rel=1e-14)
    assert lambda_max(problem(weights="uniform")) == pytest.approx(1 / 6 / 5, rel=1e-14)


@pytest.mark.parametrize("groups", [(), GROUPS])
def test_weights_are_positive_below_lambda_max_and_not_at_it(groups):
    mine = problem(groups)
    d = len(set(groups)) or len(RAGGED)
    for fraction, positive in ((0.999, True), (1.0, False)):
        least = (1 - fraction * lambda_max(mine) * (d - 1) / held(mine)).min()
        assert (least > 1e-9) == positive


@pytest.mark.parametrize("method", [GIFAIRGlobal, GIFAIRPer])
def test_lambda_at_its_limit_is_refused_by_name(method):
    with pytest.raises(UserError, match=r"fraction = 1\.0: λ must lie in \[0, λ_max\)"):
        method(fraction=1.0)
    limit = lambda_max(problem())
    with pytest.raises(UserError, match=rf"strength = .*: λ must lie below λ_max = {limit:.6g}"):
        method(strength=limit).resolve(problem())
    assert method(strength=0.99 * limit).resolve(problem()).strength == 0.99 * limit
    assert method(fraction=0.5).resolve(problem()).strength == 0.5 * limit


def test_wrong_settings_are_refused():
    with pytest.raises(UserError, match="ranks = 'best': one of stale, exact"):
        GIFAIRGlobal(ranks="best")
    with pytest.raises(UserError, match="GIFAIR-FL-Per ranks by the losses of the local models"):
        GIFAIRPer(ranks="exact")
    with pytest.raises(UserError, match="strength = -1"):
        GIFAIRGlobal(strength=-1.0)


# --- rounds -----------------------------------------------------------------------------------------------------------


@STRATEGIES
@pytest.mark.parametrize("sampled", [None, 3])
@pytest.mark.parametrize("groups", [(), GROUPS])
def test_without_lambda_it_is_fedavg_bit_for_bit(strategy, sampled, groups):
    by_seed = {0: replace(federations("mlp", {0: RAGGED})[0], groups=groups)}
    plan = make_plan(4, MINI_BATCH, clients=sampled, sampling="weight")
    plain = run(make_task("mlp"), by_seed, plan, FedAvg(lr=0.1, decay=0.9), strategy=strategy)
    for method in (GIFAIRGlobal, GIFAIRPer):
        fair = run(make_task("mlp"), by_seed, plan, method(lr=0.1, decay=0.9, fraction=0.0), strategy=strategy)
        assert torch.equal(fair.w.flatten(), plain.w.flatten())


@STRATEGIES
def test_two_rounds_by_hand(strategy):
    # p = ½, d = 2, so λ_max = ½ and λ/p = 2λ = f for λ = f·λ_max. Nothing is known in round 1, which is FedAvg's.
    # From w = 1 by one step of 0.1: w_0 = 1.1, w_1 = 1; w̄ = 1.05. F_0(1.1) = 0.405 < F_1(1) = 4: r = (−1, 1).
    # Round 2 with f = 0.5: w_0 = 1.05 + 0.1 · 0.5 · 0.95, w_1 = 1.05 − 0.1 · 1.5 · 0.1.
    found = line(GIFAIRGlobal(lr=0.1, fraction=0.5), rounds=2, steps=1, strategy=strategy)
    w0, w1 = 1.05 + 0.1 * 0.5 * 0.95, 1.05 - 0.1 * 1.5 * 0.1
    assert found.w["w"].item() == pytest.approx((w0 + w1) / 2, rel=1e-14)
    expected = [0.5 * (w0 - 2) ** 2, (w1 - 1) ** 2 + 4]
    assert found.only.state["losses"].tolist() == pytest.approx(expected, rel=1e-13)
    assert found.values("lambda_max")[0] == pytest.approx(0.5)
    assert found.values("lambda")[0] == pytest.approx(0.25)


def test_exact_ranks_are_known_from_the_first_round():
    # F_0(1) = ½ < F_1(1) = 4 at the server's model, so round 1 already has weights 0.5 and 1.5.
    found = line(GIFAIRGlobal(lr=0.1, fraction=0.5, ranks="exact"), rounds=1, steps=1)
    assert found.w["w"].item() == pytest.approx((1 + 0.1 * 0.5 * 1 + 1) / 2, rel=1e-14)


def test_per_makes_the_same_steps_and_keeps_the_local_models():
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, MINI_BATCH, client_metrics="last")
    both = [run(make_task("mlp"), by_seed, plan, m(lr=0.1, fraction=0.8)) for m in (GIFAIRGlobal, GIFAIRPer)]
    assert torch.equal(both[0].w.flatten(), both[1].w.flatten())
    local = both[1].only.local
    average = sum(p * local[k].flatten() for k, p in enumerate(both[1].only.problem.weights))
    torch.testing.assert_close(average, both[1].w.flatten(), rtol=1e-12, atol=1e-14)
    task, k = make_task("mlp"), 2
    mine, _ = task.evaluate(local[k], by_seed[0].train, [k])
    assert both[1].values("loss", round=3, client=k, split="train")[0] == pytest.approx(mine.item(), rel=1e-12)
    assert both[1].only.state["losses"][k].item() == pytest.approx(mine.item(), rel=1e-12)


def test_a_device_that_never_took_part_uses_the_servers_model():
    plan = make_plan(1, MINI_BATCH, clients=2, sampling="uniform")
    found = run(make_task("mlp"), federations("mlp", {0: RAGGED}), plan, GIFAIRPer(lr=0.1)).only
    away = next(k for k in range(len(RAGGED)) if k not in found.local)
    assert found.algorithm.model(found.state, found.local_of(away), away) is found.state["w"]


def test_a_client_that_was_not_sampled_keeps_its_last_loss():
    plan = make_plan(1, FULL_BATCH, clients=2, sampling="uniform")
    state = run(make_task("mlp"), federations("mlp", {0: RAGGED}), plan, GIFAIRGlobal(lr=0.1)).only.state
    assert state["known"].sum() == 2
    assert (state["losses"][~state["known"]] == 0).all()


def test_groups_and_sizes_of_the_devices_are_recorded():
    by_seed = {0: replace(federations("mlp", {0: RAGGED})[0], groups=GROUPS)}
    found = run(make_task("mlp"), by_seed, make_plan(1), GIFAIRGlobal())
    rows = found.frame[found.frame["metric"] == "samples"]
    assert rows["group"].tolist() == list(GROUPS)
    assert rows["value"].tolist() == list(RAGGED)


# --- what is sent -----------------------------------------------------------------------------------------------------


@STRATEGIES
@pytest.mark.parametrize(
    ("name", "hyper", "down", "up"),
    [
        ("fedavg", {}, 0, 0),
        ("gifair_global", {}, 1, 1),
        ("gifair_per", {}, 1, 1),
        ("q_ffl", {}, 0, 1),
        ("term", {}, 0, 1),
        ("term_group", {}, 0, 1),
        ("afl", {}, 0, 1),
        ("fedmgda_plus", {}, 0, 0),
        ("ditto", {}, 0, 0),
    ],
)
def test_scalars_beside_the_model(strategy, name, hyper, down, up):
    """Three of six clients in float64: the model plus these numbers, each way."""
    task, plan = make_task("mlp"), make_plan(2, MINI_BATCH, clients=3, sampling="weight")
    method = parts.algorithm(name)(lr=0.1, **hyper)
    found = run(task, federations("mlp", {0: RAGGED}), plan, method, strategy=strategy)
    size = task.start.flatten().numel()
    assert found.values("bytes_down").tolist() == [3 * 8 * (size + down)]
    assert found.values("bytes_up").tolist() == [3 * 8 * (size + up)]


def test_exact_ranks_send_the_model_to_everyone():
    task, plan = make_task("mlp"), make_plan(2, MINI_BATCH, clients=3, sampling="weight")
    found = run(task, federations("mlp", {0: RAGGED}), plan, GIFAIRGlobal(lr=0.1, ranks="exact"))
    size = task.start.flatten().numel()
    assert found.values("bytes_down").tolist() == [8 * (3 * (size + 1) + 6 * size)]
    assert found.values("bytes_up").tolist() == [8 * (3 * (size + 1) + 6)]
