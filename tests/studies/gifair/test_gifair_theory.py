"""The theory's objective, optimum and bound on cases with known constants; and the error in Theorem 37."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Batch, LocalWork
from fedrepro.core.params import Params
from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError
from fedrepro.studies.gifair.algorithms.generalisation_bound import GeneralisationBound
from fedrepro.studies.gifair.algorithms.gifair_stationary import GIFAIRStationary, gradient
from fedrepro.studies.gifair.algorithms.gifair_theory import GIFAIRTheory
from fedrepro.studies.gifair.algorithms.gifair_theory_per import GIFAIRTheoryPer
from fedrepro.studies.gifair.datasets.convex_groups import convex_groups
from fedrepro.studies.gifair.models.tanh_unit import TanhUnit
from fedrepro.studies.gifair.objective import Objective
from tests.builders import federate, make_plan, make_task, run


def two_devices(constant: float, strength: float = 0.25) -> Objective:
    """F_0 = ½θ², F_1 = ½(θ − 2)² + constant, p = ½, each device its own group."""
    ones = np.ones((2, 1, 1))
    linear, constants = np.array([[0.0], [2.0]]), np.array([0.0, 2.0 + constant])
    return Objective(ones, linear, constants, np.array([0.5, 0.5]), np.ones(2), np.arange(2), strength)


@pytest.mark.parametrize(
    ("constant", "best", "value"),
    [
        # F_0 < F_1 for θ < 1 + constant/2. There H = ¼F_0 + ¾F_1, least at 1.5, so if 1.5 is in that range it is θ*.
        (2.0, 1.5, 0.25 * 1.125 + 0.75 * 2.125),
        # Else θ* is the tie: at 1 + 0.3 both losses are ½ · 1.3².
        (0.6, 1.3, 0.5 * 1.3**2),
        (0.0, 1.0, 0.5),
    ],
)
def test_the_optimum_by_hand(constant, best, value):
    objective = two_devices(constant)
    found = objective.minimiser()
    assert found == pytest.approx([best], abs=1e-6)
    assert objective.penalised(found) == pytest.approx(value, rel=1e-9)


def test_no_other_point_is_lower_and_both_forms_of_h_agree():
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((6, 3, 3))
    curvature = parts @ parts.transpose(0, 2, 1) + np.eye(3)
    p, group = np.full(6, 1 / 6), np.array([0, 0, 1, 1, 2, 2])
    limit = (p * 2 / 2).min()
    h = Objective(curvature, rng.standard_normal((6, 3)), rng.random(6) + 2, p, np.full(6, 2.0), group, 0.8 * limit)
    best = h.minimiser()
    for theta in best + 0.1 * rng.standard_normal((300, 3)):
        assert h.penalised(theta) >= h.penalised(best) - 1e-9
        assert h.penalised(theta) == pytest.approx(h.weighted(theta), rel=1e-12)


def federation(heterogeneity: float):
    data = convex_groups(Source(np.random.default_rng(1)), heterogeneity=heterogeneity).train
    mine = [(data.x[data.client == k].tolist(), data.y[data.client == k].tolist()) for k in range(4)]
    return replace(federate(*mine), groups=("a", "a", "b", "b"))


@pytest.mark.parametrize(("heterogeneity", "within"), [(0.0, 1e-3), (1.0, 0.05)])
def test_the_iterates_approach_the_optimum_below_the_bound(heterogeneity, within):
    plan = make_plan(300, LocalWork(steps=5), "uniform", evaluate_every=300)
    task = make_task("linear", features=3, bias=False)
    found = run(task, federation(heterogeneity), plan, GIFAIRTheory(fraction=0.5))
    gap, bound = (found.values(metric) for metric in ("gap", "bound"))
    assert gap.min() >= -1e-9
    assert gap[-1] < within * gap[0]
    assert (gap <= bound).all()
    assert max(found.values("lemma_3")) < 1e-12


def test_the_first_step_is_an_eighth_of_the_inverse_smoothness():
    found = run(make_task("linear", features=3, bias=False), federation(1.0), make_plan(1), GIFAIRTheory(fraction=0.5))
    mine = found.only
    low, high = mine.problem.quadratics.spectrum()
    assert mine.algorithm.beta == pytest.approx(2 / (0.5 / 4 * low))
    assert mine.algorithm.beta / mine.algorithm.gamma == pytest.approx(1 / (8 * high))


def test_theorem_37_as_printed_fails_for_one_device_and_one_hypothesis():
    """λ = 0, K = 1: the printed bound √(½ log(1/δ))/N = 0.0122 is exceeded by 48 or fewer losses of N = 100, to which
    the binomial law gives 0.3822. With McDiarmid's N terms the bound is 0.122: 37 or fewer, 0.0060."""
    one = federate(([[0.0]] * 100, [0.0] * 100))
    found = run(make_task("linear", features=1), one, make_plan(1), GeneralisationBound())
    assert found.values("exceeds_printed")[-1] == pytest.approx(0.3822, abs=0.01)
    assert found.values("exceeds_corrected")[-1] == pytest.approx(0.0060, abs=0.002)


def test_the_penalty_of_personal_models_and_the_least_value_by_hand():
    """F_0 = ½θ², F_1 = ½(θ − 2)²: at θ = 1 both lose ½; with own losses 0 and 2 the penalty is λ · 2."""
    objective = two_devices(0.0)
    assert objective.personalised(np.array([1.0]), np.array([0.0, 2.0])) == pytest.approx(0.5 + 0.25 * 2)
    assert objective.minimiser_of_mean() == pytest.approx([1.0])


def test_one_step_of_per_is_one_of_global_at_lambda_0():
    task, plan = make_task("linear", features=3, bias=False), make_plan(20, LocalWork(steps=5), "uniform")
    both = [run(task, federation(1.0), plan, method(fraction=0.0)) for method in (GIFAIRTheory, GIFAIRTheoryPer)]
    np.testing.assert_array_equal(*(found.w["w"].numpy() for found in both))
    # λ = 0: (2.1) and (2.4) are the mean loss, so all three distances are the same
    gap, per, own = both[0].values("gap")[1:], both[1].values("gap"), both[1].values("gap_own")
    assert per == pytest.approx(gap, rel=1e-9, abs=1e-14)
    assert own == pytest.approx(gap, rel=1e-9, abs=1e-14)


def test_per_approaches_the_optimum_of_2_1_but_not_that_of_2_4():
    plan = make_plan(300, LocalWork(steps=5), "uniform", evaluate_every=300)
    found = run(make_task("linear", features=3, bias=False), federation(1.0), plan, GIFAIRTheoryPer(fraction=0.5))
    gap, own = found.values("gap"), found.values("gap_own")
    assert gap[-1] < 0.05 * gap[0]
    assert own[-1] > 10 * gap[-1]


def test_the_gradient_of_h_by_hand():
    """F_0 = ½(w − 1)², F_1 = ½(w + 3)² at w = 0: losses ½ and 4.5, so ranks −1 and 1. λ = λ_max/2 = ¼, so the weights
    are ½ ∓ ¼, and ∇H = −¼ + ¾ · 3 = 2."""
    two = federate(([[1.0]], [1.0]), ([[1.0]], [-3.0]))
    task = make_task("linear", features=1, bias=False)
    found = run(task, two, make_plan(1), GIFAIRStationary(lr=0.1, fraction=0.5)).only
    start = {**found.state, "w": found.state["w"] * 0}
    assert gradient(found.problem, start)["w"].tolist() == pytest.approx([2.0])


def test_the_gradient_vanishes_at_a_smooth_minimum_and_not_at_a_kink():
    """The devices of `two_devices`: with constant 2, θ* = 1.5 is smooth; with constant 0 it is the tie at 1, where
    ∇H = ∓½."""
    task, plan = make_task("linear", features=1, bias=False), make_plan(400, LocalWork(steps=1), "uniform")
    smooth = federate(([[1.0], [1.0]], [0.0, 0.0]), ([[1.0], [1.0]], [4.0, 0.0]))  # ½(θ − 2)² + 2
    kink = federate(([[1.0]], [0.0]), ([[1.0]], [2.0]))
    last = {}
    for name, devices in (("smooth", smooth), ("kink", kink)):
        values = run(task, devices, plan, GIFAIRStationary(lr=0.55, fraction=0.5)).values("gradient")
        last[name] = min(values[-20:])
    assert last["smooth"] < 1e-6
    assert last["kink"] == pytest.approx(0.25, abs=0.1)


def test_steps_fall_like_the_root_of_the_iterations():
    task = make_task("linear", features=1, bias=False)
    one = federate(([[1.0]], [1.0]))
    found = run(task, one, make_plan(1, LocalWork(steps=2), "uniform"), GIFAIRStationary(lr=0.5))
    assert found.w["w"].item() == pytest.approx(1 - (1 - 0.5) * (1 - 0.5 / math.sqrt(2)), rel=1e-6)


def test_the_unit_has_the_gradient_of_autograd():
    unit = TanhUnit((2,))
    w = torch.tensor([0.3, -0.7], requires_grad=True)
    batch = Batch(torch.tensor([[1.0, 2.0], [0.5, -1.0]]), torch.tensor([0.2, 1.0]))
    unit.batch_loss(Params(w=w), batch).backward()
    torch.testing.assert_close(unit.batch_gradient(Params(w=w.detach()), batch)["w"], w.grad)


def test_alike_groups_have_the_same_coefficients_and_too_few_samples_are_refused():
    data = convex_groups(Source(np.random.default_rng(0)), heterogeneity=0.0, groups=3)
    assert (data.facts["w"] == 1).all()
    assert data.train.group.max() == 2
    with pytest.raises(UserError, match="samples = 3: must be more than features = 3"):
        convex_groups(Source(np.random.default_rng(0)), samples=3)
