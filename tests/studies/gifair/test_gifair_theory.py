"""The theory's objective, optimum and bound on cases with known constants; and the error in Theorem 37."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedrepro.core.federation import LocalWork
from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError
from fedrepro.studies.gifair.algorithms.gifair_theory import GIFAIRTheory, Objective
from fedrepro.studies.gifair.datasets.convex_groups import convex_groups
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
    """λ = 0, K = 1, losses 0 or M = 1 with probability ½ each: the complexity of one hypothesis is 0, and the printed
    bound √(½ (M/N)² log 1/δ) is exceeded far more often than δ. With McDiarmid's N terms, M²/N, it is not."""
    n, delta = 100, 0.05
    deviation = 0.5 - np.random.default_rng(0).binomial(n, 0.5, 20_000) / n
    printed, right = (math.sqrt(0.5 * terms * (1 / n) ** 2 * math.log(1 / delta)) for terms in (1, n))
    assert (deviation > printed).mean() > 0.3
    assert (deviation > right).mean() < delta


def test_alike_groups_have_the_same_coefficients_and_too_few_samples_are_refused():
    data = convex_groups(Source(np.random.default_rng(0)), heterogeneity=0.0, groups=3)
    assert (data.facts["w"] == 1).all()
    assert data.train.group.max() == 2
    with pytest.raises(UserError, match="samples = 3: must be more than features = 3"):
        convex_groups(Source(np.random.default_rng(0)), samples=3)
