"""The theorems on quadratics: the Gaussian integral against quadrature, slacks by hand, moments against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad, solve_ivp

from fedrepro.core.federation import LocalWork
from fedrepro.core.model import Quadratic
from fedrepro.studies.sgld.algorithms.exact_quadratics import ExactQuadratics, affine_flow, losses
from tests.builders import federations, make_plan, make_task, run

#: F_0 = ½x² − x + 0.2, F_1 = 2x² + 2x: minimiser of the mean −0.2
LINE = Quadratic(*(torch.tensor(v, dtype=torch.float64) for v in ([[[1.0]], [[4.0]]], [[1.0], [-2.0]], [0.2, 0.0])))


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_losses_by_hand():
    assert losses(LINE, vector(3.0)).tolist() == pytest.approx([4.5 - 3 + 0.2, 18 + 6], rel=1e-14)


@pytest.mark.parametrize(("x", "duals"), [(0.0, (0.0, 0.0)), (1.3, (0.7, -2.0))])
def test_the_objective_is_the_integral_of_12(x, duals):
    by_quadrature = []
    for h, b, c, dual in ((1.0, 1.0, 0.2, duals[0]), (4.0, -2.0, 0.0, duals[1])):

        def density(z, h=h, b=b, c=c, dual=dual):
            return math.exp(-(h / 2 * z * z - b * z + c) - dual * (z - x) - (z - x) ** 2)  # γ = 2

        by_quadrature.append(math.log(quad(density, -30, 30, points=[x])[0]))
    found = ExactQuadratics(gamma=2.0).objective(LINE, vector(x), torch.tensor(duals, dtype=torch.float64)[:, None])
    assert found == pytest.approx(np.mean(by_quadrature), rel=1e-9)


def test_the_constants_by_hand():
    # ½·log 2π − ½·log(h + γ) with γ = 2
    expected = [0.5 * math.log(2 * math.pi / 3), 0.5 * math.log(2 * math.pi / 6)]
    assert ExactQuadratics(gamma=2.0).constants(LINE).tolist() == pytest.approx(expected, rel=1e-14)


def found(**hyper) -> dict[str, float]:
    plan = make_plan(1, LocalWork(steps=50), "uniform")
    values = run(make_task("linear"), federations("linear", {0: [9] * 4}), plan, ExactQuadratics(**hyper)).frame
    return values[values["split"] == ""].set_index("metric")["value"].to_dict()


def test_the_bounds_hold_and_are_tight_under_both_conditions_only():
    values = found()
    assert values["bound41_slack"] >= 0
    assert values["bound42_slack"] >= 0
    assert values["bound42_both"] < 1e-10
    assert values["bound42_same_hessians"] > 1e-3
    assert values["bound42_closed_gap"] > 1e-3
    assert values["saddle_residual"] < 1e-10


def test_without_its_constant_the_bound_fails_for_stiff_losses():
    # κ = d/2·log 2π − ½·log det(H + γI) < 0 as soon as the determinant exceeds (2π)^d
    assert found(gamma=0.1)["bound41_literal"] > found(gamma=50.0)["bound41_literal"]
    assert found(gamma=50.0)["bound41_literal"] < 0


def test_the_flow_of_an_affine_system_by_hand():
    # dz = −2z + 3: z = 1.5·(1 − e^(−2t))
    flow = affine_flow(vector(-2.0)[:, None], vector(3.0), 0.7)
    assert flow.item() == pytest.approx(1.5 * (1 - math.exp(-1.4)), rel=1e-12)


def test_the_averaged_system_is_the_ode_of_42_and_43():
    theory = ExactQuadratics(gamma=2.0, dual_rate=0.5)
    drift, shift = theory.averaged_system(LINE)

    def by_hand(_, z):
        x, duals = z[0], z[1:]
        means = (np.array([1.0, -2.0]) + 2 * x - duals) / (np.array([1.0, 4.0]) + 2)
        return [np.mean(means + duals / 2) - x, *(0.5 * (means - x))]

    end = solve_ivp(by_hand, (0, 1.5), np.zeros(3), rtol=1e-10, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(affine_flow(drift, shift, 1.5).numpy(), end, rtol=1e-7)


def test_the_slow_variables_approach_the_averaged_ones_as_the_fast_ones_become_faster():
    errors = [found(separation=s)["homogenisation_error"] for s in (1.0, 0.1, 0.01, 0.001)]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.1 * errors[0]
    biases = [found(separation=s)["homogenisation_bias"] for s in (0.01, 0.001)]
    assert biases[1] == pytest.approx(biases[0] / 10, rel=0.2)  # of first order in ε


def test_the_moments_of_the_linear_system_are_those_of_a_simulation():
    theory = ExactQuadratics(gamma=2.0, separation=0.5, beta=0.5, time=1.0)
    drift, shift, noise = (v.numpy() for v in theory.linear_system(LINE))
    rng, dt = np.random.default_rng(0), 1e-3
    z = np.zeros((4000, len(shift)))
    for _ in range(1000):
        z += (z @ drift.T + shift) * dt + rng.normal(size=z.shape) * np.sqrt(np.diag(noise) * dt)
    averaged = affine_flow(*theory.averaged_system(LINE), 1.0).numpy()
    simulated = math.sqrt(((z[:, :3] - averaged) ** 2).sum(1).mean()) / np.linalg.norm(averaged)
    assert theory._slow_dynamics(LINE)["homogenisation_error"] == pytest.approx(simulated, rel=0.03)


def test_two_coupled_copies_approach_each_other():
    assert found()["contraction_rate"] > 0


@pytest.mark.parametrize("decay", [0.0, 1 / 3])
def test_the_error_of_the_estimate_is_that_of_a_simulation(decay):
    theory = ExactQuadratics(lr=0.1, beta=0.5, burn_in=5, average=0.8)
    rng = np.random.default_rng(0)
    x = estimate = np.full(20_000, -1.5)
    for step in range(12):
        eta = 0.1 * (step - 5) ** -decay if step > 5 else 0.1
        x = (1 - eta * 2) * x + math.sqrt(eta * 0.5) * rng.normal(size=x.shape)
        estimate = 0.8 * estimate + 0.2 * x if step > 5 else x
    found = theory.error(vector(2.0), vector(-1.5), 12, decay).item()
    assert found == pytest.approx((estimate**2).mean(), rel=0.03)


def test_without_averaging_and_noise_the_error_is_that_of_gradient_descent():
    theory = ExactQuadratics(lr=0.1, beta=0.0, burn_in=0, average=0.0)
    assert theory.error(vector(2.0), vector(1.0), 7, 0.0).item() == pytest.approx(0.8**14, rel=1e-12)
