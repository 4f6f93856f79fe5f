"""Federated SGLD and noisy FedPD: a round by hand, FedPD as their limit, and the distribution of the chain on a
quadratic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedpd import FedPD
from fedrepro.core.federation import Batches, LocalWork
from fedrepro.errors import UserError
from fedrepro.studies.sgld.algorithms.fed_sgld import FedSGLD
from fedrepro.studies.sgld.algorithms.fed_sgld_coupled import FedSGLDCoupled
from fedrepro.studies.sgld.algorithms.fedpd_noisy import FedPDNoisy, membership
from tests.builders import RAGGED, federate, federations, make_plan, make_problem, make_task, params, run
from tests.unit.algorithms.test_fedpd import quadratics

POISSON = LocalWork(steps=6, batch=3, poisson=True)
strategies = pytest.mark.parametrize("strategy", ["loop", "vmap"])


def node(algorithm, noise, curvature=1.0, target=2.0, x0=1.0, dual=0.0, **batches):
    """(x_i, λ_i) of one node with F = ½·curvature·(w − target)² after one round; noise [Q]."""
    task = make_task("linear", features=1, bias=False)
    root = math.sqrt(curvature)
    problem = make_problem(task, federate(([[root]], [root * target])), make_plan(1, LocalWork(steps=len(noise))))
    whole = Batches(0, len(noise), whole=problem.whole(0), noise=torch.tensor(noise)[:, None].double(), **batches)
    local = {"dual": torch.tensor([dual], dtype=torch.float64)}
    upload, local = algorithm.resolve(problem).client_update(task, params(w=[x0]), local, whole)
    return upload["x0"].item() - local["dual"].item() / algorithm.gamma, local["dual"].item()


def test_a_round_by_hand():
    """Q = 4, Q₀ = 1, lr = 0.1, γ = 1, β = 0.4, F = ½(w − 2)², x₀ = 1, λ = ½: √(0.1·0.4) = 0.2 per unit of noise."""
    noise = [1.0, -1.0, 0.5, 2.0]
    # h = −1 + ½ = −½: 1.05 + 0.2 = 1.25
    # h = −0.75 + ½ + 0.25 = 0: 1.25 − 0.2 = 1.05, the sample of q = Q₀
    # h = −0.95 + ½ + 0.05 = −0.4; (q − Q₀)^(−⅓) = 1: 1.09 + 0.1 = 1.19
    # h = −0.81 + ½ + 0.19 = −0.12; η = 0.1·2^(−⅓)
    eta = 0.1 * 2 ** (-1 / 3)
    last = 1.19 + 0.12 * eta + math.sqrt(0.4 * eta) * 2
    common = {"lr": 0.1, "beta": 0.4, "burn_in": 1, "decay": 1 / 3}
    x, dual = node(FedPDNoisy(**common), noise, dual=0.5)
    assert x == pytest.approx(last, rel=1e-13)
    assert dual == pytest.approx(0.5 + (last - 1), rel=1e-13)
    averaged = 0.75 * (0.75 * 1.05 + 0.25 * 1.19) + 0.25 * last
    x, dual = node(FedSGLD(**common, average=0.75), noise, dual=0.5)
    assert x == pytest.approx(averaged, rel=1e-13)
    assert dual == pytest.approx(0.5 + (averaged - 1), rel=1e-13)
    x, _ = node(FedSGLD(**common, plain_mean=True), noise, dual=0.5)
    assert x == pytest.approx((1.05 + 1.19 + last) / 3, rel=1e-13)


def test_the_whole_gradient_is_clipped():
    # h = 4·(1 − 2) + 1 = −3, cut to norm ½ in the direction of descent: x = 1 + 0.1·½
    x, _ = node(FedPDNoisy(lr=0.1, beta=0.0, clip=0.5), [0.0], curvature=4.0, dual=1.0)
    assert x == pytest.approx(1.05, rel=1e-14)
    # below the norm nothing changes
    x, _ = node(FedPDNoisy(lr=0.1, beta=0.0, clip=3.5), [0.0], curvature=4.0, dual=1.0)
    assert x == pytest.approx(1.3, rel=1e-14)


@strategies
def test_clipped_steps_are_counted(strategy):
    # Node 0 has h = −1, −0.7 (test_fedpd). Node 1 has h = 4, cut to 3: x = 0.7, then h = 2.8 − 0.6 = 2.2. One of four.
    algorithm = FedPDNoisy(lr=0.1, gamma=2.0, beta=0.0, clip=3.0, record_every=1)
    assert quadratics(algorithm, strategy=strategy).values("clipped")[0] == pytest.approx(0.25)


@strategies
@pytest.mark.parametrize("work", [LocalWork(steps=4), LocalWork(steps=4, batch=3), POISSON], ids=["full", "mini", "P"])
@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
def test_without_noise_clip_and_averaging_it_is_fedpd_bit_for_bit(model, work, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(3, work)
    ways = (
        FedPD(lr=0.05, gamma=0.7),
        FedPDNoisy(lr=0.05, gamma=0.7, beta=0.0, clip=math.inf, burn_in=1),
        FedSGLD(lr=0.05, gamma=0.7, beta=0.0, clip=math.inf, burn_in=1, average=0.0),
    )
    plain, *others = (run(make_task(model), by_seed, plan, a, strategy=strategy) for a in ways)
    for other in others:
        assert torch.equal(plain.w.flatten(), other.w.flatten())
        assert plain.frame.drop(columns="algorithm").equals(other.frame.drop(columns="algorithm"))


@strategies
def test_settings_that_differ_in_real_numbers_are_stacked_and_stay_themselves(strategy):
    by_seed, plan = federations("softmax", {0: RAGGED, 1: RAGGED}), make_plan(2, POISSON)
    some = [
        FedSGLD(lr=0.05, beta=0.0, clip=1.0, burn_in=2, average=0.5),
        FedSGLD(lr=0.1, beta=0.3, clip=0.2, burn_in=2, average=0.9, decay=1 / 3),
        FedSGLD(lr=0.1, beta=0.3, clip=math.inf, burn_in=2, average=0.0),
    ]
    together = run(make_task("softmax"), by_seed, plan, *some, strategy=strategy).replicates
    alone = [r for a in some for r in run(make_task("softmax"), by_seed, plan, a).replicates]
    for a, b in zip(together, alone, strict=True):
        torch.testing.assert_close(a.state["w"].flatten(), b.state["w"].flatten(), rtol=1e-10, atol=1e-12)


def chain(algorithm, steps, chains, curvature, gamma, x0, dual):
    """The oracle's results [chains] of one node on F = ½·curvature·(w − 2)², and the last samples."""
    task = make_task("linear", features=1, bias=False)
    root = math.sqrt(curvature)
    problem = make_problem(task, federate(([[root]], [root * 2.0])), make_plan(1, LocalWork(steps=steps)))
    noise = torch.randn(chains, steps, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    local = {"dual": torch.tensor([dual], dtype=torch.float64)}
    start = params(w=[x0])

    def one(noise):
        batches = Batches(0, steps, whole=problem.whole(0), noise=noise)
        return algorithm.oracle(task, start, start.flatten(), local, batches)[0]

    return torch.func.vmap(one)(noise)[:, 0].numpy()


def test_on_a_quadratic_the_chain_has_half_the_variance_that_the_paper_states():
    """x ← x − η·a(x − m) + √(ηβ)ξ with a = F'' + γ is autoregressive with factor 1 − ηa, so its variance settles at

        ηβ / (1 − (1 − ηa)²) = β/(2a) · 1/(1 − ηa/2).

    The law that (11) states for it, exp(−L/β) (β being the inverse of the paper's there), has variance β/a: twice that.
    """
    curvature, gamma, beta, lr, x0, dual = 3.0, 1.0, 0.5, 0.1, 1.0, 0.25
    a = curvature + gamma
    minimiser = (curvature * 2.0 + gamma * x0 - dual) / a  # of ½·3(w − 2)² + λ(w − x₀) + ½γ(w − x₀)²
    found = chain(FedPDNoisy(lr=lr, gamma=gamma, beta=beta, clip=math.inf), 60, 40_000, curvature, gamma, x0, dual)
    theory = beta / (2 * a) / (1 - lr * a / 2)
    error = theory * math.sqrt(2 / len(found))  # standard error of a variance
    assert found.var() == pytest.approx(theory, abs=4 * error)
    assert found.mean() == pytest.approx(minimiser, abs=4 * math.sqrt(theory / len(found)))
    assert abs(found.var() - beta / a) > 50 * error
    # from η → 0 the factor is exactly two
    assert beta / a == pytest.approx(2 * theory * (1 - lr * a / 2), rel=1e-12)


def test_on_a_quadratic_the_average_tends_to_the_lagrangians_minimiser():
    """Plain means of more and more samples; σ-averaging shrinks the variance of one sample."""
    curvature, gamma, beta, lr, x0, dual = 3.0, 1.0, 0.5, 0.1, 1.0, 0.25
    minimiser = (curvature * 2.0 + gamma * x0 - dual) / (curvature + gamma)
    common = {"lr": lr, "gamma": gamma, "beta": beta, "clip": math.inf, "burn_in": 40}
    spreads = []
    for steps in (50, 200, 800):
        algorithm = FedSGLD(**common, plain_mean=True)
        found = chain(algorithm, steps, 2_000, curvature, gamma, x0, dual)
        assert found.mean() == pytest.approx(minimiser, abs=5 * found.std() / math.sqrt(len(found)))
        spreads.append(np.mean((found - minimiser) ** 2))
    assert spreads[0] > 3 * spreads[1] > 9 * spreads[2]
    sample = chain(FedPDNoisy(**common), 200, 2_000, curvature, gamma, x0, dual)
    weighted = chain(FedSGLD(**common, average=0.9), 200, 2_000, curvature, gamma, x0, dual)
    # of an autoregressive chain with factor ρ = 0.6: Var = s²·(1 − σ)/(1 + σ)·(1 + σρ)/(1 − σρ)
    factor = 0.1 / 1.9 * (1 + 0.54) / (1 - 0.54)
    assert weighted.var() / sample.var() == pytest.approx(factor, rel=0.2)


# --- two coupled runs ------------------------------------------------------------------------------------------------


@strategies
def test_coupled_runs_on_quadratics_come_together(strategy):
    algorithm = FedSGLDCoupled(lr=0.1, beta=0.3, burn_in=1, twin=3.0)
    found = quadratics(algorithm, rounds=60, steps=5, strategy=strategy)
    x0, distance = found.values("distance_x0"), found.values("distance")
    assert x0[0] == 4  # from 1 and −3
    assert distance[0] == pytest.approx(math.sqrt(2) * 4)
    assert distance[-1] < 1e-3 * distance[0]
    # not because they stopped: the loss still moves
    assert found.values("loss", split="train", client=-1)[-10:].std() > 1e-3
    assert np.array_equal(
        found.w["w"], quadratics(FedSGLD(lr=0.1, beta=0.3, burn_in=1), rounds=60, steps=5, strategy=strategy).w["w"]
    )


def test_the_distance_of_coupled_runs_by_hand():
    # One step of 0.1 on QUADRATICS without noise and γ = 1, from 1: up 2x − x₀ = 1.2 and 0.2; from −1: h = −3 and −4,
    # x = −0.7 and −0.6, up −0.4 and −0.2. x₀ = 0.7 and −0.3; duals (0.1, −0.4) and (0.3, 0.4).
    found = quadratics(FedSGLDCoupled(lr=0.1, beta=0.0, average=0.0, twin=1.0), steps=1)
    assert found.values("distance_x0").tolist() == pytest.approx([2.0, 1.0], rel=1e-13)
    assert found.values("distance_dual").tolist() == pytest.approx([0.0, math.hypot(0.2, 0.8)], rel=1e-13)
    assert found.values("distance")[1] == pytest.approx(math.sqrt(2 + 0.68), rel=1e-13)


@strategies
@pytest.mark.parametrize("model", ["softmax", "mlp"])
def test_the_two_strategies_agree_on_coupled_runs(model, strategy):
    by_seed, plan = federations(model, {0: RAGGED, 1: RAGGED}), make_plan(2, POISSON)
    some = [FedSGLDCoupled(lr=0.05, beta=0.1, clip=2.0, burn_in=1, twin=2.0, ridge=r) for r in (0.0, 0.5)]
    found = run(make_task(model), by_seed, plan, *some, strategy=strategy)
    other = run(make_task(model), by_seed, plan, *some)
    for metric in ("distance", "distance_dual", "loss"):
        np.testing.assert_allclose(found.values(metric), other.values(metric), rtol=1e-10)


# --- what the privacy account reads, wrong values --------------------------------------------------------------------


def test_what_the_account_needs_is_recorded_once():
    by_seed, plan = federations("softmax", {0: RAGGED}), make_plan(3, POISSON)
    algorithm = FedSGLD(lr=0.08, beta=0.5, clip=2.0, burn_in=2, decay=1 / 3, account=True)
    found = run(make_task("softmax"), by_seed, plan, algorithm)
    thirds = [1, 1, 1, 1, 2 ** (-1 / 3), 3 ** (-1 / 3)]
    assert found.values("step_size") == pytest.approx([0.08 * t for t in thirds], rel=1e-14)
    assert found.values("samples").tolist() == list(RAGGED)
    assert found.values("beta").tolist() == [0.5]
    assert found.values("clip").tolist() == [2.0]


@pytest.mark.parametrize(
    ("make", "hyper", "message"),
    [
        (FedPDNoisy, {"beta": -0.1}, r"FedPDNoisy: beta = -0\.1"),
        (FedPDNoisy, {"clip": 0.0}, r"FedPDNoisy: clip = 0\.0"),
        (FedPDNoisy, {"burn_in": -1}, r"FedPDNoisy: burn_in = -1"),
        (FedPDNoisy, {"decay": 1.0}, r"FedPDNoisy: decay = 1\.0"),
        (FedSGLD, {"average": 1.0}, r"FedSGLD: average = 1\.0"),
    ],
)
def test_a_wrong_value_is_named(make, hyper, message):
    with pytest.raises(UserError, match=message):
        make(**hyper)


def test_a_burn_in_without_an_end_is_named():
    with pytest.raises(UserError, match=r"FedSGLD: burn_in = 2 leaves none of the 2 local steps"):
        quadratics(FedSGLD(burn_in=2), steps=2)
    with pytest.raises(UserError, match=r"burn_in = 3 leaves none of the 3 local steps"):
        quadratics(FedSGLD(burn_in=3, local_steps=3), steps=5)


# --- each record clipped ----------------------------------------------------------------------------------------------


@strategies
def test_each_record_clipped_by_hand(strategy):
    # Records (1, 3) and (1, 0.5) of ŷ = w at w = 1: gradients −2 and 0.5, cut to norm 1: −1 and 0.5, mean −0.25.
    # h = −0.25 + λ + γ·0 = −0.25: x = 1.025 with lr 0.1; uploaded is x + λ/γ with λ = 0.025.
    held = federate(([[1.0], [1.0]], [3.0, 0.5]))
    plan = make_plan(1, LocalWork(steps=1, batch=2))
    task = make_task("linear", features=1, bias=False)
    algorithm = FedPDNoisy(lr=0.1, beta=0.0, clip=1.0, clip_each=True)
    found = run(task, held, plan, algorithm, w=params(w=[1.0]), strategy=strategy)
    assert found.w["w"].item() == pytest.approx(1.05, rel=1e-12)


@strategies
@pytest.mark.parametrize("model", ["softmax", "mlp"])
def test_a_large_norm_clips_no_record(model, strategy):
    by_seed, plan = federations(model, {0: RAGGED}), make_plan(2, POISSON)
    ways = [FedSGLD(lr=0.05, beta=0.1, clip=1e9, clip_each=each) for each in (True, False)]
    each, whole = (run(make_task(model), by_seed, plan, way, strategy=strategy).w.flatten() for way in ways)
    torch.testing.assert_close(each, whole, rtol=1e-9, atol=1e-12)


def test_the_clipped_mean_is_at_most_the_norm():
    by_seed = federations("softmax", {0: [12]})
    problem = make_problem(make_task("softmax"), by_seed[0], make_plan(1, LocalWork(steps=1, batch=12)))
    w = problem.task.parameters()
    whole = by_seed[0].train.full_batch(0)
    g = FedPDNoisy(clip=0.01, clip_each=True).gradient(problem.task, w, whole._replace(weight=torch.ones(12)))
    assert 0 < g.norm().item() <= 0.01 * (1 + 1e-9)


# --- the attack -------------------------------------------------------------------------------------------------------


def test_the_attack_by_hand():
    # ŷ = w at w = 1: losses ½(1 − y)² of members 0, 2, 8 and of others 2, 18. Pairs below: 0 < 2, 18; 2 = 2 (half),
    # 2 < 18; 8 < 18: 4.5 of 6. Thresholds 0, 2, 8, 18: hits ⅓, ⅔, 1, 1; alarms 0, ½, ½, 1: largest difference ½.
    held = federate(([[1.0]] * 3, [1.0, 3.0, 5.0]), test=([[1.0]] * 2, [-1.0, 7.0]))
    problem = make_problem(make_task("linear", features=1, bias=False), held, make_plan(1, LocalWork(steps=1)))
    found = membership(problem, params(w=[1.0]))
    assert found == pytest.approx({"attack_area": 0.75, "attack_advantage": 0.5}, rel=1e-12)


def test_the_attack_on_equal_records_is_chance():
    held = federate(([[1.0]] * 2, [1.0, 3.0]), test=([[1.0]] * 2, [1.0, 3.0]))
    problem = make_problem(make_task("linear", features=1, bias=False), held, make_plan(1, LocalWork(steps=1)))
    assert membership(problem, params(w=[0.5])) == pytest.approx({"attack_area": 0.5, "attack_advantage": 0.0})
