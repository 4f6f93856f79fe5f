"""Closed forms against small cases by hand, against each other, and on hard data."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Federation, Holdings, LocalWork
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.algorithms.closed_form import ClosedForm
from fedrepro.studies.fedlin.algorithms.hm1 import HM1
from tests.builders import federate, holdings, make_plan, make_task, run

# device 0: least squares 2, H = 1, b = 2; device 1: least squares 1, H = 2, b = 2
TWO = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]))
OMEGA = np.array([[2.0, 1.0], [1.0, 3.0]])


def fit(algorithm, federation=TWO, features=1, outputs=1):
    task = make_task("linear_outputs", features=features, outputs=outputs)
    return run(task, federation, make_plan(3, weights="uniform"), algorithm)


def theta(found) -> list[float]:
    return found.only.state["theta"].flatten().tolist()


def with_test(federation: Federation, x, y, sizes, **facts) -> Federation:
    samples = federate((x, y)).train.samples
    facts = {k: np.asarray(v) for k, v in facts.items()}
    return dataclasses.replace(federation, test=holdings(samples, sizes), facts=facts)


def test_least_squares_of_each_device():
    assert theta(fit(ClosedForm())) == pytest.approx([2.0, 1.0], rel=1e-14)


def test_dis_ridge_averages_the_devices_ridges():
    # λ = ½: 2/(1 + ½) and 2/(2 + ½)
    found = fit(ClosedForm(fit="ridge", penalty=0.5))
    assert theta(found) == pytest.approx([(4 / 3 + 4 / 5) / 2] * 2, rel=1e-14)
    assert theta(fit(ClosedForm(fit="ridge", penalty=1e-12))) == pytest.approx([1.5] * 2, rel=1e-9)


def test_the_posterior_mean_solves_the_normal_equations():
    known = dataclasses.replace(TWO, facts={"omega": OMEGA, "sigma": np.array(0.5)})
    gram, moment = np.diag([1.0, 4.0]) / 0.25, np.array([2.0, 4.0]) / 0.25
    expected = np.linalg.solve(gram + np.linalg.inv(OMEGA), moment)
    assert theta(fit(ClosedForm(fit="bayes"), known)) == pytest.approx(expected, rel=1e-12)


def test_with_an_omega_of_rank_one_all_devices_are_one():
    """Ω = 1: one θ for both, the ridge of the pooled data: (2 + 4)/(1 + 4 + σ²)."""
    known = dataclasses.replace(TWO, facts={"omega": np.ones((2, 2)), "sigma": np.array(0.5)})
    assert theta(fit(ClosedForm(fit="bayes"), known)) == pytest.approx([6 / 5.25] * 2, rel=1e-12)


def test_a_wide_prior_leaves_every_device_alone():
    known = dataclasses.replace(TWO, facts={"omega": 1e9 * np.eye(2), "sigma": np.array(0.5)})
    assert theta(fit(ClosedForm(fit="bayes"), known)) == pytest.approx([2.0, 1.0], rel=1e-6)


def test_several_features_agree_with_the_dense_prior():
    rng = np.random.default_rng(5)
    data = [(rng.normal(size=(n, 3)), rng.normal(size=n)) for n in (4, 6, 2)]
    a = rng.normal(size=(3, 3))
    known = dataclasses.replace(federate(*data), facts={"omega": a @ a.T, "sigma": np.array(0.3)})
    precision = np.kron(np.linalg.inv(a @ a.T), np.eye(3))
    for k, (x, _) in enumerate(data):
        precision[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] += x.T @ x / 0.09
    right = np.concatenate([x.T @ y for x, y in data]) / 0.09
    found = fit(ClosedForm(fit="bayes"), known, features=3)
    assert theta(found) == pytest.approx(np.linalg.solve(precision, right), rel=1e-9)


def test_long_training_alone_ends_at_least_squares():
    rng = np.random.default_rng(6)
    data = federate(*((rng.normal(size=(n, 2)), rng.normal(size=n)) for n in (5, 8)))
    task, plan = make_task("linear_outputs", 2, 1), make_plan(400, LocalWork(steps=20), "uniform", evaluate_every=10**6)
    trained = run(task, data, plan, HM1(lr=0.1, prior="none")).only.state["theta"]
    torch.testing.assert_close(fit(ClosedForm(), data, 2).only.state["theta"], trained, rtol=1e-8, atol=1e-10)


def test_devices_without_samples_with_one_and_with_collinear_columns():
    none, one = (np.zeros((0, 2)), np.zeros(0)), ([[3.0, 4.0]], [25.0])
    collinear = ([[1.0, 1.0], [2.0, 2.0]], [2.0, 4.0])
    found = fit(ClosedForm(), federate(none, one, collinear), features=2)
    assert theta(found) == pytest.approx([0, 0, 3, 4, 1, 1], abs=1e-12)  # the shortest of all solutions


def test_errors_on_the_test_set_by_hand():
    # device 0 has θ = 2, test (1, 1) and (2, 6): errors 1 and −2; device 1 has θ = 1, test (1, 4): error −3
    known = with_test(
        TWO,
        [[1.0], [2.0], [1.0]],
        [1.0, 6.0, 4.0],
        [2, 1],
        theta=[[1.0], [1.0]],
        scored=[True, True],
        test_mean=[1, 2, 1],
    )
    found = fit(ClosedForm(), known)
    assert found.values("a_rmse", split="test") == pytest.approx([(np.sqrt(2.5) + 3) / 2], rel=1e-12)
    # against the true means 1, 2, 1 the errors are 1, 2 and 0
    assert found.values("a_rmse_noise_free", split="test") == pytest.approx([np.sqrt(2.5) / 2], rel=1e-12)
    assert found.values("parameter_error") == pytest.approx([np.sqrt(1 / 2)], rel=1e-12)
    # training means 2 and 3: errors 1, −4 and −1; the truth is off by 0, 4 and 3
    assert found.values("a_rmse_trivial", split="test") == pytest.approx([(np.sqrt(8.5) + 1) / 2], rel=1e-12)
    assert found.values("a_rmse_floor", split="test") == pytest.approx([(np.sqrt(8) + 3) / 2], rel=1e-12)
    assert set(found.frame["round"]) == {3}


def test_only_scored_devices_count_on_the_test_set():
    known = with_test(TWO, [[1.0], [1.0]], [1.0, 4.0], [1, 1], theta=[[1.0], [1.0]], scored=[True, False])
    found = fit(ClosedForm(), known)
    assert found.values("a_rmse", split="test") == pytest.approx([1.0], rel=1e-12)
    assert found.values("a_rmse_trivial", split="test") == pytest.approx([1.0], rel=1e-12)
    assert found.values("mse", split="test", client=-1) == pytest.approx([(1 + 9) / 2], rel=1e-12)


def test_a_number_for_every_output():
    data = federate(([[1.0], [1.0]], [[1.0, 3.0], [3.0, 3.0]]))
    data = dataclasses.replace(data, facts={"outputs": np.array(["a", "b"])})
    found = fit(ClosedForm(), data, outputs=2)
    assert found.values("a_rmse", group="a") == pytest.approx([1.0], rel=1e-12)
    assert found.values("a_rmse", group="b") == pytest.approx([0.0], abs=1e-7)
    assert found.values("mse", split="train", client=-1) == pytest.approx([0.5], rel=1e-12)


@pytest.mark.parametrize(
    ("hyper", "said"),
    [({"fit": "lasso"}, "fit = 'lasso': one of"), ({"penalty": 0.0}, r"penalty = 0\.0: must be positive")],
)
def test_what_it_refuses(hyper, said):
    with pytest.raises(UserError, match=said):
        ClosedForm(**hyper)


def test_what_it_needs():
    with pytest.raises(UserError, match="does not know its true omega and sigma"):
        fit(ClosedForm(fit="bayes"))
    with pytest.raises(UserError, match="needs noise; σ is 0"):
        fit(ClosedForm(fit="bayes"), dataclasses.replace(TWO, facts={"omega": OMEGA, "sigma": np.array(0.0)}))
    with pytest.raises(UserError, match="needs the model linear_outputs"):
        run(make_task("linear", 1), TWO, make_plan(1), ClosedForm())


def test_the_rows_of_a_later_seed_are_its_own():
    """In memory the test rows of all seeds follow one another; the true means belong to one seed."""
    known = with_test(TWO, [[9.0], [1.0], [1.0]], [9.0, 2.0, 5.0], [1, 1, 1], test_mean=[1, 3], scored=[True, True])
    later = Holdings(known.test.samples, np.array([1, 2]), np.array([0, 1, 2]))
    found = fit(ClosedForm(), dataclasses.replace(known, test=later))
    assert found.values("a_rmse_floor", split="test") == pytest.approx([(1 + 2) / 2], rel=1e-12)
