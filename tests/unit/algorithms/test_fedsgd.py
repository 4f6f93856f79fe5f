"""FedSGD by hand, on the problems of test_fedavg."""

from __future__ import annotations

import pytest
import torch

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.federation import LocalWork
from fedrepro.errors import UserError
from tests.builders import RAGGED, federations, make_plan, make_task, params, run
from tests.unit.algorithms.test_fedavg import LINE, assert_softmax, line, softmax


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize(("weights", "expected"), [("uniform", 1.05), ("size", 1 + 0.1 / 3)])
def test_a_round_of_least_squares(weights, expected, strategy):
    # At w = 1 the gradients are −1 and 0: a step against −½, or by size against −⅓.
    found = line(FedSGD(lr=0.1), steps=1, weights=weights, strategy=strategy)
    assert found.w["w"].item() == pytest.approx(expected, rel=1e-15)


def test_several_batches_are_one_gradient_at_the_servers_model():
    # Client 1 one sample at a time at w = 0: gradients 2·(−2) and 0, mean −2; client 0: −2 and, having one batch,
    # −2 again: w = 0.2. (Local steps would have ended elsewhere.)
    task, plan = make_task("linear", features=1, bias=False), make_plan(1, LocalWork(epochs=1, batch=1), "uniform")
    assert run(task, LINE, plan, FedSGD(lr=0.1), w=params(w=[0.0])).w["w"].item() == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_a_round_of_softmax(strategy):
    # At 0: client 0 has ∇u = ∇v = −½, client 1 ∇u = 1, ∇v = ½. With step 1: u = −¼, v = 0.
    assert_softmax(softmax(FedSGD(lr=1.0), steps=1, strategy=strategy).w, -0.25, 0.0)


def test_weighted_by_size_it_is_gradient_descent_on_all_data():
    """Σ n_k/n · ∇F_k is the gradient of the mean over all samples."""
    federation = federations("softmax", {0: RAGGED})[0]
    task = make_task("softmax")
    found = run(task, federation, make_plan(5, LocalWork(epochs=1), "size"), FedSGD(lr=0.3))
    module = make_task("softmax").model
    optimiser = torch.optim.SGD(module.parameters(), lr=0.3)
    for _ in range(5):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(module(federation.train.samples.x), federation.train.samples.y).backward()
        optimiser.step()
    expected = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    torch.testing.assert_close(found.w.flatten(), expected, rtol=1e-12, atol=1e-14)


def test_a_wrong_value_is_named():
    with pytest.raises(UserError, match=r"FedSGD: lr = 0\.0"):
        FedSGD(lr=0.0)
