"""FGPR and Separate on a case that can be worked by hand, in float64 from the thesis' formulas.

Device A has two samples, device B one, so p = (2/3, 1/3). A covariance of two samples has the eigenvalues a ± c, with
a = v + s (variance, noise) and c = v e, e = exp(−d²/2l²), d the distance of the inputs:

    L = ½ (u²/(a + c) + w²/(a − c) + log(a² − c²) + 2 log 2π),   u, w = (y₁ ± y₂)/√2

and of one sample L = ½ (y²/a + log a + log 2π). Gradients follow by da/dv = da/ds = 1, dc/dv = e, dc/dl = c d²/l³, over
the number of samples, times the softplus' slope; then Adam's steps, and the server's Σ p_k θ_k. The numbers in EXPECTED
were computed once from these lines alone; no code of the authors.
"""

import math

import numpy as np
import pytest

from fedrepro.core.federation import LocalWork
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR
from fedrepro.studies.fgpr.algorithms.gp_separate import GPSeparate
from tests.builders import federate, make_plan, make_task, run

A = (0.1, 0.5), (1.0, -0.5)  # inputs, targets
B = (0.3,), (0.8,)
LEAST = 1e-6, 1e-6, 1e-4
START = 0.5, 0.75, 0.25
LR, ROUNDS, STEPS = 0.05, 2, 2
#: (lengthscale, variance, noise variance)
EXPECTED = {
    "fgpr": (0.4501896496877791, 0.6495463563984529, 0.2666614352640008),
    "separate": (0.4262805366490599, 0.6495398179907004, 0.2973584105944021),
}


def gradient(theta, x, y):
    """Of L over the number of samples, in (lengthscale, variance, noise variance)."""
    scale, v, s = theta
    a = v + s
    if len(y) == 1:
        slope = 0.5 * (-((y[0] / a) ** 2) + 1 / a)
        return 0.0, slope, slope
    d2 = (x[0] - x[1]) ** 2
    e = math.exp(-d2 / (2 * scale**2))
    c = v * e
    plus, minus = ((y[0] + y[1]) / math.sqrt(2) / (a + c)) ** 2, ((y[0] - y[1]) / math.sqrt(2) / (a - c)) ** 2
    by_a = 0.5 * (-plus - minus + 1 / (a + c) + 1 / (a - c))
    by_c = 0.5 * (-plus + minus + 1 / (a + c) - 1 / (a - c))
    return by_c * c * d2 / scale**3 / 2, (by_a + by_c * e) / 2, by_a / 2


def adam(theta, x, y, steps):
    raw = [math.log(math.expm1(value - least)) for value, least in zip(theta, LEAST, strict=True)]
    first, second = [0.0] * 3, [0.0] * 3
    for t in range(1, steps + 1):
        slopes = [1 / (1 + math.exp(-r)) for r in raw]
        for i, g in enumerate(gradient(theta, x, y)):
            first[i] = 0.9 * first[i] + 0.1 * g * slopes[i]
            second[i] = 0.999 * second[i] + 0.001 * (g * slopes[i]) ** 2
            raw[i] -= LR * first[i] / (1 - 0.9**t) / (math.sqrt(second[i] / (1 - 0.999**t)) + 1e-8)
        theta = [math.log1p(math.exp(r)) + least for r, least in zip(raw, LEAST, strict=True)]
    return theta


def worked(method):
    theta = list(START)
    if method == "separate":
        return adam(theta, *A, ROUNDS * STEPS)
    for _ in range(ROUNDS):
        both = adam(theta, *A, STEPS), adam(theta, *B, STEPS)
        theta = [(2 * a + b) / 3 for a, b in zip(*both, strict=True)]
    return theta


@pytest.mark.parametrize("method", EXPECTED)
def test_numbers_worked_by_hand(method):
    a, b = ((np.array(x)[:, None], np.array(y)) for x, y in (A, B))
    algorithm, data = (FGPR(lr=LR), (a, b)) if method == "fgpr" else (GPSeparate(lr=LR, moments="keep"), (a,))
    plan = make_plan(ROUNDS, LocalWork(steps=STEPS))
    w = run(make_task("gaussian_process", 1, start=START), federate(*data), plan, algorithm).w
    ours = [w[name].item() for name in ("lengthscale", "signal", "noise")]
    assert worked(method) == pytest.approx(EXPECTED[method], abs=1e-14)
    assert ours == pytest.approx(EXPECTED[method], abs=1e-13)
