"""Networks and polynomials with separate outputs: each output trains as it would alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.func import functional_call

from fedrepro.core.federation import Batch, Federation
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from tests.builders import federate, make_plan, make_problem, make_task, params


def batch(outputs: int = 1, n: int = 9, d: int = 1, weight=None) -> Batch:
    rng = np.random.default_rng(3)
    x, y = rng.random((n, d)), rng.normal(size=(n, outputs))
    return Batch(torch.from_numpy(x), torch.from_numpy(y if outputs > 1 else y[:, 0]), weight)


def test_a_network_by_hand():
    task = make_task("network", 2, hidden=[2])
    w = params(**{"weights.0": [[[1.0, -1.0], [2.0, 0.5]]], "weights.1": [[[3.0], [10.0]]]})
    w |= params(**{"biases.0": [[[0.5, 0.0]]], "biases.1": [[[-1.0]]]})
    # hidden: relu(1·1 + 2·1 + 0.5) = 3.5 and relu(−1 + 0.5) = 0
    x = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    assert functional_call(task.model, w, (x,)).tolist() == [3 * 3.5 - 1]
    assert task.loss(w, Batch(x, torch.tensor([8.5], dtype=torch.float64))) == 0.5


@pytest.mark.parametrize("weight", [None, [1.0, 1, 1, 1, 1, 1, 0, 0, 0]])
def test_the_gradient_of_a_network_is_that_of_each_output_alone(weight):
    weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    both, own = make_task("network", 1, outputs=2, hidden=[4]), make_task("network", 1, outputs=1, hidden=[4])
    data = batch(2, weight=weight)
    found = both.gradient(both.start, data)
    for s in range(2):
        alone = Params({k: v[s : s + 1] for k, v in both.start.items()})
        expected = own.gradient(alone, data._replace(y=data.y[:, s]))
        for name, value in expected.items():
            torch.testing.assert_close(found[name][s], value[0])


@pytest.mark.parametrize("weight", [None, [1.0, 1, 1, 1, 1, 1, 0, 0, 0]])
def test_the_gradient_of_a_polynomial_is_that_of_its_loss(weight):
    weight = None if weight is None else torch.tensor(weight, dtype=torch.float64)
    task = make_task("polynomial", 1, outputs=2, degrees=[1, 3], bases=["monomial", "legendre"], width=2.0)
    w = Params(beta=torch.from_numpy(np.random.default_rng(0).normal(size=(4, 8))))
    data = batch(2, weight=weight)
    torch.testing.assert_close(task.gradient(w, data)["beta"], torch.func.grad(task.loss)(w, data)["beta"])


def test_a_summarised_batch_has_the_loss_and_the_gradient_of_its_samples():
    task = make_task("polynomial", 1, outputs=2, degrees=[1, 3], bases=["monomial", "legendre"], width=2.0)
    w = Params(beta=torch.from_numpy(np.random.default_rng(0).normal(size=(4, 8))))
    data = batch(2)
    whole = task.model.summarise(data)
    torch.testing.assert_close(task.loss(w, whole), task.loss(w, data))
    torch.testing.assert_close(task.gradient(w, whole)["beta"], task.gradient(w, data)["beta"])


def test_a_polynomial_by_hand():
    task = make_task("polynomial", 1, degrees=[1, 2], bases=["monomial", "legendre"], width=2.0)
    w = Params(beta=torch.ones(3, 4, dtype=torch.float64))
    # at x = 3: t = 1.5, u = 2; degree 1: 1 + t, 1 + u; degree 2: + t², + (3u² − 1)/2
    found = functional_call(task.model, w, (torch.tensor([[3.0]], dtype=torch.float64),))
    assert found.tolist() == [[2.5, 3.0, 4.75, 8.5]]


def test_both_bases_span_the_same_polynomials():
    task = make_task("polynomial", 1, degrees=[4], bases=["monomial", "legendre"])
    x = torch.linspace(0, 1, 30, dtype=torch.float64)[:, None]
    powers, legendre = task.model.features(x).unbind(-1)
    coefficients = torch.linalg.lstsq(powers, legendre).solution
    torch.testing.assert_close(powers @ coefficients, legendre, atol=1e-10, rtol=0)


def test_an_unknown_basis_is_an_error():
    with pytest.raises(UserError, match="'chebyshev' is unknown"):
        make_task("polynomial", 1, bases=["chebyshev"])


def test_errors_of_devices_by_hand():
    """Two devices and a network that predicts 1 everywhere."""
    x = np.zeros((2, 1))
    federation = federate((x, np.array([[0.0, 1.0], [2.0, 3.0]])), (x, np.array([[1.0, 0.0], [1.0, 0.0]])))
    federation = Federation(federation.train, test=federation.train, facts={"outputs": np.array([3, 5])})
    task = make_task("network", 1, outputs=2, hidden=[1])
    w = Params({k: torch.zeros_like(v) for k, v in task.start.items()})
    w["biases.1"] += 1
    losses, mse, more = task.model.assess(make_problem(task, federation, make_plan()), {0: w, 1: w}, "test")
    found = {(m.metric, m.group, m.client): m.value for m in more}
    assert found["rmse", "3", 0] == 1
    assert found["rmse", "3", 1] == 0
    assert found["a_rmse", "3", -1] == 0.5
    assert found["rmse", "5", 0] == pytest.approx(np.sqrt(2))
    assert found["a_rmse", "5", -1] == pytest.approx((np.sqrt(2) + 1) / 2)
    assert found["sd_rmse", "3", -1] == pytest.approx(np.std([1, 0], ddof=1))
    assert found["a_rmse_trivial", "5", -1] == pytest.approx((1 + 0) / 2)
    assert mse.tolist() == pytest.approx([1.5, 0.5])
    assert losses.tolist() == pytest.approx([1.5, 0.5])
