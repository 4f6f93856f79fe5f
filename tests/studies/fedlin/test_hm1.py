"""HM1 by hand, against the posterior mode, its limits, and its messages to the devices.

Two devices of least squares in θ ∈ ℝ. Device 0 has (x, y) = (1, 2): X(Y − Xᵀθ) = 2 − θ. Device 1 has (2, 2) and (0, 4):
the sum is 4 − 4θ, the mean 2 − 2θ.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fedrepro.algorithms.local import Local
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.algorithms.hm1 import HM1
from fedrepro.studies.fedlin.linear.estimators import parameter_errors, pulls
from tests.builders import (
    MINI_BATCH,
    RAGGED,
    federate,
    federations,
    make_plan,
    make_problem,
    make_task,
    params,
    run,
    spying,
)

TWO = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]))
OMEGA = np.array([[2.0, 1.0], [1.0, 3.0]])


def hm1(algorithm=None, rounds=1, steps=1, federation=TWO, w=1.0, model="linear_outputs", **options):
    task = make_task(model, features=1, outputs=1)
    plan = make_plan(rounds, LocalWork(steps=steps), "uniform", **options.pop("plan", {}))
    start = params(w=[[w]]) if model == "linear_outputs" else None
    return run(task, federation, plan, algorithm or HM1(lr=0.1), w=start, **options)


def knowing(federation: Federation, **facts) -> Federation:
    return dataclasses.replace(federation, facts={k: np.asarray(v) for k, v in facts.items()})


def theta(found) -> list[float]:
    return found.only.state["theta"].flatten().tolist()


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_two_devices(strategy):
    # From θ = (1, 1), Ω = I: p = (1, 1). Two steps of 2η = 0.2 on means. Device 0: 1 → 1.2 → 1.36; device 1 is at its
    # minimum. Line 8 takes 0.2 · 1 of both: 1.16 and 0.8. Line 11, α = ½, d = 1: Ω = ½I + ½θθᵀ.
    found = hm1(HM1(lr=0.1, alpha=0.5, jitter=0.0), steps=2, strategy=strategy)
    assert theta(found) == pytest.approx([1.16, 0.8], rel=1e-14)
    expected = [[0.5 + 0.5 * 1.16**2, 0.5 * 1.16 * 0.8], [0.5 * 1.16 * 0.8, 0.5 + 0.5 * 0.8**2]]
    torch.testing.assert_close(found.only.state["omega"], torch.tensor([expected], dtype=torch.float64))


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_second_round_pulls_by_the_new_omega(strategy):
    # α = 1: after round one Ω = θθᵀ/1 + jitter. Here α = ½ as above; p = Ω⁻¹θ by Sherman–Morrison: ½I + ½θθᵀ has
    # p = 2θ/(1 + |θ|²), |θ|² = 1.16² + 0.8² = 1.9856. One step per round: round one gives (1.0, 0.8).
    found = hm1(HM1(lr=0.1, alpha=0.5, jitter=0.0), rounds=2, strategy=strategy)
    p = [2 * t / (1 + 1.0 + 0.64) for t in (1.0, 0.8)]
    first = 1.0 + 0.2 * (2 - 1.0) - 0.2 * p[0]
    second = 0.8 + 0.2 * (2 - 2 * 0.8) - 0.2 * p[1]
    assert theta(found) == pytest.approx([first, second], rel=1e-13)


def test_sums_over_samples_are_the_box():
    # one step of 0.02: device 0 as with means, 1 + 0.02 · 1 − 0.02; device 1: 4 − 4θ = 0 at θ = 1, so from 0.5
    assert theta(hm1(HM1(lr=0.01, gradient="sum", jitter=0.0))) == pytest.approx([1.0, 0.98], rel=1e-14)
    assert theta(hm1(HM1(lr=0.01, gradient="sum", jitter=0.0), w=0.5)) == pytest.approx(
        [0.5 + 0.02 * 1.5 - 0.01, 0.5 + 0.02 * 2 - 0.01], rel=1e-14
    )


def test_alpha_one_gives_the_closed_form():
    """Ω = ΘᵀΘ/d (§3.3), with d = 3 features, separately for two outputs."""
    by_seed, plan = federations("linear", {0: RAGGED}), make_plan(2, LocalWork(steps=2), "uniform")
    found = run(make_task("linear", bias=False), by_seed, plan, HM1(lr=0.01, alpha=1.0, jitter=1e-6)).only.state
    torch.testing.assert_close(found["omega"][0], found["theta"] @ found["theta"].T / 3, rtol=1e-14, atol=1e-15)


def test_alpha_zero_keeps_omega_and_kept_replaces_one_minus_alpha():
    assert torch.equal(hm1(HM1(lr=0.1, alpha=0.0)).only.state["omega"][0], torch.eye(2, dtype=torch.float64))
    # the released code: 0.8 Ω + 0.8 θθᵀ/d
    found = hm1(HM1(lr=0.1, alpha=0.8, kept=0.8)).only.state
    moment = torch.outer(found["theta"][:, 0], found["theta"][:, 0])
    torch.testing.assert_close(found["omega"][0], 0.8 * torch.eye(2, dtype=torch.float64) + 0.8 * moment)


# --- the posterior mode -----------------------------------------------------------------------------------------------


def mode(gram, moment, omega, variance) -> np.ndarray:
    """argmin of Σ_k ‖Y_k − X_kᵀθ_k‖²/σ_k² + tr(Θ Ω⁻¹ Θᵀ) for θ ∈ ℝ, by its normal equations; variance [K]."""
    return np.linalg.solve(np.diag(gram / variance) + np.linalg.inv(omega), moment / variance)


GRAM, MOMENT, SIZES = np.array([1.0, 4.0]), np.array([2.0, 4.0]), np.array([1.0, 2.0])


@pytest.mark.parametrize("gradient", ["mean", "sum"])
def test_one_step_per_round_ends_at_the_mode_for_every_step_size(gradient):
    """With T = 1 lines 6 and 8 are one gradient step: the mode under σ² = 1 (sums) or σ² = n (means)."""
    known = knowing(TWO, omega=OMEGA)
    algorithm = HM1(lr=0.1, gradient=gradient, omega="true", jitter=0.0)
    found = hm1(algorithm, rounds=300, federation=known, plan={"evaluate_every": 10**6})
    variance = SIZES if gradient == "mean" else np.ones(2)
    assert theta(found) == pytest.approx(mode(GRAM, MOMENT, OMEGA, variance), rel=1e-12)


@pytest.mark.parametrize("gradient", ["mean", "sum"])
def test_small_steps_end_at_the_mode_with_the_noise_that_line_8_implies(gradient):
    """T = 4: σ² = 1/T with sums, n/T with means, up to the length of a step."""
    known, variance = knowing(TWO, omega=OMEGA), (SIZES if gradient == "mean" else np.ones(2)) / 4
    off = []
    for lr in (4e-3, 2e-3):
        algorithm = HM1(lr=lr, gradient=gradient, omega="true", jitter=0.0)
        found = hm1(algorithm, rounds=1500, steps=4, federation=known, plan={"evaluate_every": 10**6})
        off.append(np.abs(theta(found) - mode(GRAM, MOMENT, OMEGA, variance)).max())
    assert off[1] < 0.01
    assert off[1] / off[0] == pytest.approx(0.5, abs=0.05)  # to the limit of small steps, in proportion
    assert np.abs(mode(GRAM, MOMENT, OMEGA, variance) - mode(GRAM, MOMENT, OMEGA, 2 * variance)).max() > 0.05


@pytest.mark.parametrize("gradient", ["mean", "sum"])
def test_the_models_own_weight_ends_at_the_models_own_mode(gradient):
    known = knowing(TWO, omega=OMEGA, sigma=0.7)
    algorithm = HM1(lr=2e-3, gradient=gradient, prior="map", omega="true", jitter=0.0)
    found = hm1(algorithm, rounds=2000, steps=3, federation=known, plan={"evaluate_every": 10**6})
    assert theta(found) == pytest.approx(mode(GRAM, MOMENT, OMEGA, np.full(2, 0.49)), rel=0.01)


# --- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("work", [LocalWork(steps=3), MINI_BATCH])
def test_without_the_prior_it_is_local_training(work, strategy):
    by_seed, plan = federations("mlp", {0: RAGGED}), make_plan(3, work, "uniform")
    alone = run(make_task("mlp"), by_seed, plan, Local(lr=0.1), strategy=strategy).only
    found = run(make_task("mlp"), by_seed, plan, HM1(lr=0.05, prior="none"), strategy=strategy).only
    for k in range(len(RAGGED)):
        torch.testing.assert_close(found.state["theta"][k], alone.local[k].flatten(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_outputs_do_not_meet(strategy):
    """Two outputs at once equal two runs of one output: each has its own Ω."""
    rng = np.random.default_rng(3)
    x = [rng.normal(size=(n, 2)) for n in (4, 3, 5)]
    y = [rng.normal(size=(len(own), 2)) for own in x]
    plan = make_plan(4, LocalWork(steps=3), "uniform")

    def fit(columns):
        data = federate(*((own, mine[:, columns]) for own, mine in zip(x, y, strict=True)))
        task = make_task("linear_outputs", features=2, outputs=2 if columns == [0, 1] else 1)
        return run(task, data, plan, HM1(lr=0.05, alpha=0.5), w=params(w=np.ones((2, task.model.outputs_apart))))

    both = fit([0, 1]).only.state["theta"].view(3, 2, 2)
    for j in (0, 1):
        torch.testing.assert_close(both[..., j], fit(j).only.state["theta"], rtol=1e-12, atol=1e-14)


def test_a_device_that_is_not_asked_keeps_its_parameters():
    seen: list = []
    found = hm1(spying(HM1(lr=0.1, alpha=0.5), seen), rounds=1, plan={"clients": 1})
    (asked,) = next(s["cohort"] for s in seen if s["what"] == "server").clients
    assert theta(found)[1 - asked] == 1.0
    assert theta(found)[asked] != 1.0
    moment = found.only.state["theta"] @ found.only.state["theta"].T
    torch.testing.assert_close(found.only.state["omega"][0], 0.5 * torch.eye(2, dtype=torch.float64) + 0.5 * moment)


# --- what leaves the server -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["box", "none"])
def test_a_device_is_sent_its_own_column_and_its_pull_only(prior):
    by_seed, seen = federations("linear", {0: RAGGED}), []
    algorithm = HM1(lr=0.01, alpha=0.5, prior=prior, jitter=0.0)
    plan = make_plan(2, LocalWork(steps=2), "uniform")
    before = run(make_task("linear"), by_seed, make_plan(1, LocalWork(steps=2), "uniform"), algorithm).only.state
    run(make_task("linear"), by_seed, plan, spying(algorithm, seen))
    second = [s["message"] for s in seen if s["what"] == "client" and s["round"] == 1]
    inverse = torch.linalg.inv(before["omega"][0]) if prior == "box" else torch.zeros(len(RAGGED), len(RAGGED))
    for k, message in enumerate(second):
        assert message.shape == (2, before["theta"].shape[1])
        torch.testing.assert_close(message[0], before["theta"][k])
        expected = sum(before["theta"][i] * inverse[i, k] for i in range(len(RAGGED)))
        torch.testing.assert_close(message[1], expected)


# --- hard data --------------------------------------------------------------------------------------------------------


def test_a_device_without_samples_follows_the_others_by_the_prior():
    """Its likelihood is constant: Ω ties it to device 0, so its mode is Ω_10/Ω_00 times that of device 0."""
    data = federate(([[1.0]], [2.0]), (np.zeros((0, 1)), np.zeros(0)))
    known = knowing(data, omega=OMEGA)
    algorithm = HM1(lr=0.05, gradient="sum", omega="true", jitter=0.0)
    found = hm1(algorithm, rounds=1500, federation=known, w=0.0, plan={"evaluate_every": 10**6})
    assert theta(found) == pytest.approx([4 / 3, 2 / 3], rel=1e-9)  # (1 + ½·…)⁻¹: 2/(1 + 1/2), and half of it
    assert np.isfinite(found.values("loss")).all()


def test_a_device_with_one_sample_collinear_columns_and_constant_targets():
    one = ([[1.0, 2.0]], [3.0])
    collinear = ([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [1.0, 2.0, 3.0])
    constant = ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 2.0, 2.0])
    task, plan = make_task("linear_outputs", features=2, outputs=1), make_plan(300, LocalWork(steps=5), "uniform")
    found = run(task, federate(one, collinear, constant), plan, HM1(lr=0.01, alpha=0.5))
    assert found.only.diverged is None
    assert np.isfinite(found.values("loss")).all()


def test_a_singular_omega_is_recorded_as_a_run_that_diverged():
    # two devices, d = 1, equal parameters and α = 1: Ω = θ²(1 1; 1 1) has no inverse
    data = federate(([[1.0]], [2.0]), ([[1.0]], [2.0]))
    assert hm1(HM1(lr=0.1, alpha=1.0, jitter=0.0), rounds=3, federation=data).only.diverged == 1
    assert hm1(HM1(lr=0.1, alpha=1.0, jitter=1e-6), rounds=3, federation=data).only.diverged is None


def test_jitter_is_relative_to_the_mean_variance():
    theta, omega = torch.tensor([[1.0], [2.0]]).double(), torch.diag(torch.tensor([1.0, 3.0])).double()[None]
    # mean(diag) = 2, jitter ½: Ω + I
    assert pulls(theta, omega, 0.5).flatten().tolist() == pytest.approx([1 / 2, 2 / 4], rel=1e-14)


# --- metrics and refusals ---------------------------------------------------------------------------------------------


def test_the_distance_to_the_true_parameters():
    found = hm1(HM1(lr=0.1, jitter=0.0), steps=2, federation=knowing(TWO, theta=[[1.0], [0.0]]))
    # from (1, 1): √(1/2); after the round of above (1.16, 0.8): √((0.16² + 0.8²)/2)
    assert found.values("parameter_error") == pytest.approx([np.sqrt(0.5), np.sqrt(0.6656 / 2)], rel=1e-12)


def test_the_condition_of_omega_is_recorded_where_it_is_asked_for():
    found = hm1(HM1(lr=0.1, alpha=0.5, jitter=0.0, record="condition"), steps=2)
    assert found.values("omega_smallest") == pytest.approx([1.0, 0.5], rel=1e-12)
    assert found.values("omega_largest") == pytest.approx([1.0, 0.5 + 0.5 * (1.16**2 + 0.8**2)], rel=1e-12)
    assert not len(hm1().values("omega_smallest"))


def test_without_the_prior_there_is_no_omega():
    found = hm1(HM1(lr=0.1, prior="none", omega="true", record="condition"), federation=knowing(TWO, omega=OMEGA))
    assert found.only.state["omega"].numel() == 0
    assert not len(found.values("omega_smallest"))


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_settings_side_by_side_are_settings_alone(strategy):
    """Means, sums and no prior at once: some devices have their own factors, others none."""
    settings = [HM1(lr=0.01), HM1(lr=0.01, gradient="sum"), HM1(lr=0.01, prior="none"), HM1(lr=0.01, prior="map")]
    known, task, plan = knowing(TWO, sigma=0.7), make_task("linear_outputs", 1, 1), make_plan(3, LocalWork(steps=2))
    together = run(task, known, plan, *settings, w=params(w=[[1.0]]), strategy=strategy)
    for r, algorithm in zip(together.replicates, settings, strict=True):
        alone = run(task, known, plan, algorithm, w=params(w=[[1.0]])).only
        torch.testing.assert_close(r.state["theta"], alone.state["theta"], rtol=1e-13, atol=1e-14)
    assert len({tuple(r.state["theta"].flatten().tolist()) for r in together.replicates}) == 4


@pytest.mark.parametrize(
    ("hyper", "said"),
    [
        ({"lr": 0.0}, r"lr = 0\.0: the step must be positive"),
        ({"alpha": 1.5}, r"alpha = 1\.5: must lie in \[0, 1\]"),
        ({"kept": -0.1}, r"kept = -0\.1"),
        ({"jitter": -1.0}, r"jitter = -1\.0: must not be negative"),
        ({"gradient": "total"}, "gradient = 'total': one of mean, sum"),
        ({"prior": "no"}, "prior = 'no': one of box, map, none"),
        ({"omega": "known"}, "omega = 'known': one of learned, true"),
        ({"start": "zero"}, "start = 'zero'"),
        ({"record": "all"}, "record = 'all'"),
    ],
)
def test_what_it_refuses(hyper, said):
    with pytest.raises(UserError, match=said):
        HM1(**hyper)


@pytest.mark.parametrize(
    ("hyper", "said"), [({"omega": "true"}, "its true omega"), ({"prior": "map"}, "its true sigma")]
)
def test_what_the_data_must_know(hyper, said):
    with pytest.raises(UserError, match=said):
        hm1(HM1(**hyper))


# --- mini-batches (lines 5 and 6) -------------------------------------------------------------------------------------

#: device 1 of TWO has (2, 2) and (0, 4); a batch of one is the first of the two drawn
DRAWN = LocalWork(steps=1, batch=2, subsets=True)


def drawn(algorithm, rounds=1, federation=TWO, **options):
    task = make_task("linear_outputs", features=1, outputs=1)
    return run(task, federation, make_plan(rounds, DRAWN, "uniform"), algorithm, w=params(w=[[0.5]]), **options)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_line_6_is_the_sum_over_the_mini_batch(strategy):
    # Two samples, (x, y) = (2, 2) and (0, 4), from θ = ½: the sum over both is 2(2 − 1) + 0(4 − 0) = 2, their mean 1.
    # A step of 2η₂ = 0.02 on the sum: 0.54; on the mean: 0.52. Device 0 has one sample, 2 − ½: 0.53.
    arm = {"prior": "none", "jitter": 0.0}
    found = drawn(HM1(lr=0.01, gradient="sum", **arm), strategy=strategy)
    assert theta(found) == pytest.approx([0.53, 0.54], rel=1e-14)
    found = drawn(HM1(lr=0.01, gradient="mean", **arm), strategy=strategy)
    assert theta(found) == pytest.approx([0.53, 0.52], rel=1e-14)


def test_a_batch_of_one_takes_the_first_drawn_sample():
    # one of the two samples: a step of 0.02 · 2 = 0.04 or of 0, never their sum or mean
    found = drawn(HM1(lr=0.01, batch=1, gradient="sum", prior="none"), federation=dict.fromkeys(range(8), TWO))
    assert {round(r.state["theta"][1].item(), 12) for r in found.replicates} == {0.5, 0.54}


@pytest.mark.parametrize("gradient", ["mean", "sum"])
def test_drawing_all_samples_is_the_full_batch(gradient):
    algorithm = HM1(lr=0.05, gradient=gradient, jitter=0.0)
    whole, same = hm1(algorithm, rounds=3, w=0.5), drawn(algorithm, rounds=3)
    assert theta(same) == pytest.approx(theta(whole), rel=1e-13)


def test_the_models_weight_of_the_prior_counts_the_sampled_share():
    # T b σ²/n = 3 · 1 · 0.49/2 on device 1, with b = 1 of n = 2; 3 · 0.49 on device 0; means: b = 1 always
    problem = knowing(TWO, omega=OMEGA, sigma=0.7)
    task = make_task("linear_outputs", features=1, outputs=1)
    known = make_problem(task, problem, make_plan(1, LocalWork(steps=3), "uniform"))
    algorithm = HM1(batch=1, gradient="sum", prior="map")
    weights = [algorithm.init_client(known, k, task.parameters())[1].item() for k in (0, 1)]
    assert weights == pytest.approx([3 * 0.49, 3 * 0.49 / 2])
    mean = HM1(prior="map").init_client(known, 1, task.parameters())[1].item()
    assert mean == pytest.approx(3 * 0.49 / 2)


ARMS = {
    "box 2": {"batch": 2},
    "alone": {"batch": 3, "prior": "none"},
    "means": {"gradient": "mean"},
    "map": {"batch": 2, "prior": "map"},
}


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("omega", ["learned", "true"])
def test_arms_at_once_equal_a_run_each(strategy, omega):
    rng = np.random.default_rng(5)
    x = [rng.normal(size=(n, 2)) for n in (4, 6, 5)]
    y = [rng.normal(size=(len(own), 2)) for own in x]
    root = rng.normal(size=(2, 3, 3))
    facts = {"sigma": [0.3, 0.6], "omega": root @ root.transpose(0, 2, 1) + np.eye(3)}
    data = knowing(federate(*zip(x, y, strict=True)), **facts)
    plan = make_plan(3, LocalWork(steps=2, batch=4, subsets=True), "uniform")
    start = torch.from_numpy(rng.normal(size=(2, 2)))
    common = {"lr": 0.02, "gradient": "sum", "alpha": 0.3, "jitter": 0.0, "omega": omega}
    task = make_task("linear_outputs", features=2, outputs=2, arms=list(ARMS))
    together = run(task, data, plan, HM1(arms=ARMS, **common), w=Params(w=start.repeat(1, 4)), strategy=strategy)
    found = together.only.state["theta"].view(3, 2, 4, 2)
    for place, changes in enumerate(ARMS.values()):
        plain = make_task("linear_outputs", features=2, outputs=2)
        single = run(plain, data, plan, HM1(**common | changes), w=Params(w=start), strategy=strategy).only
        torch.testing.assert_close(found[:, :, place], single.state["theta"].view(3, 2, 2), rtol=1e-12, atol=1e-14)


def test_arms_must_be_the_models_and_change_what_devices_do():
    task = make_task("linear_outputs", features=1, outputs=1, arms=["box"])
    problem = make_problem(task, TWO, make_plan())
    with pytest.raises(UserError, match="the model's arms are box"):
        HM1(arms={"bax": {}}).resolve(problem)
    with pytest.raises(UserError, match="an arm changes batch, gradient, prior"):
        HM1(arms={"box": {"alpha": 0.5}})


def test_the_released_codes_divisor_replaces_the_dimension():
    found = hm1(HM1(lr=0.1, alpha=0.8, kept=0.8, divisor=4.0)).only.state
    moment = torch.outer(found["theta"][:, 0], found["theta"][:, 0])
    torch.testing.assert_close(found["omega"][0], 0.8 * torch.eye(2, dtype=torch.float64) + 0.2 * moment)


def test_errors_of_theta_in_both_norms_by_hand():
    # Θ* = (1, −2; 0, 4) by device, Θ̂ = (1, 1; 2, 1): off (0, 3), (2, −3). Frobenius √22, Θ* √21; one-norm 5, Θ* 4.
    data = knowing(federate(([[1.0, 0.0]], [0.0]), ([[0.0, 1.0]], [0.0])), theta=[[1.0, -2.0], [0.0, 4.0]])
    problem = make_problem(make_task("linear_outputs", features=2, outputs=1), data, make_plan())
    found = {m.metric: m.value for m in parameter_errors(torch.tensor([[1.0, 1.0], [2.0, 1.0]]).double(), problem)}
    root = 2**0.5
    assert found == pytest.approx(
        {
            "parameter_error": 22**0.5 / root,
            "relative_error": (22 / 21) ** 0.5,
            "parameter_error_one": 5 / root,
            "relative_error_one": 5 / 4,
        }
    )
