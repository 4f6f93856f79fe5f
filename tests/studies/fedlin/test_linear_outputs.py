"""Linear regressions of several outputs: gradients and losses by hand; errors as in the thesis."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Batch, Federation, Samples
from fedrepro.core.model import build
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs
from tests.builders import holdings, make_plan, make_problem

X = torch.tensor([[1.0, 0.0], [1.0, 2.0]]).double()
Y = torch.tensor([[1.0, 0.0], [3.0, 4.0]]).double()
W = Params(w=torch.tensor([[1.0, 0.0], [0.5, 1.0]]).double())  # predicts (1, 0) and (2, 2): errors 0, 0 and −1, −2


def model(outputs: int = 2, start: float = 0.0, seed: int = 0) -> LinearOutputs:
    return build(LinearOutputs, (2,), outputs, torch.Generator().manual_seed(seed), start=start).double()


def test_loss_and_gradient_by_hand():
    task, batch = model(), Batch(X, Y)
    assert task.batch_loss(W, batch).item() == pytest.approx(0.25 + 1.0)  # ½ · mean of 0, 1 and of 0, 4
    expected = torch.tensor([[-0.5, -1.0], [-1.0, -2.0]]).double()
    torch.testing.assert_close(task.batch_gradient(W, batch)["w"], expected)
    torch.testing.assert_close(task.batch_gradient(W, task.summarise(batch))["w"], expected)
    assert task.batch_loss(W, task.summarise(batch)).item() == pytest.approx(1.25)


def test_padding_does_not_count():
    padded = Batch(torch.cat([X, X[:1] + 7]), torch.cat([Y, Y[:1]]), weight=torch.tensor([1.0, 1.0, 0.0]).double())
    torch.testing.assert_close(model().batch_gradient(W, padded)["w"], model().batch_gradient(W, Batch(X, Y))["w"])


def test_one_output_takes_plain_targets():
    task, w = model(1), Params(w=W["w"][:, 1:])
    torch.testing.assert_close(
        task.batch_gradient(w, Batch(X, Y[:, 1]))["w"], model().batch_gradient(W, Batch(X, Y))["w"][:, 1:]
    )
    assert task(X).shape == (2,)
    assert model()(X).shape == (2, 2)


def test_a_client_without_samples_has_no_gradient():
    whole = model().summarise(Batch(X[:0], Y[:0]))
    assert not any(part.any() for part in whole)
    assert not model().batch_gradient(W, whole)["w"].any()


def test_it_starts_at_zero_or_at_normal_numbers_from_its_generator():
    assert not model().w.any()
    assert torch.equal(model(start=2.0).w, model(start=2.0).w)
    assert not torch.equal(model(start=2.0).w, model(start=2.0, seed=1).w)
    wide = build(LinearOutputs, (500,), 4, torch.Generator().manual_seed(0), start=2.0)
    assert wide.w.std().item() == pytest.approx(2.0, rel=0.05)


def assess(outputs: int, models: dict[int, Params], split: str, facts: dict[str, np.ndarray]):
    """The assessment of four devices, each with X and Y."""
    held = holdings(Samples(X.repeat(4, 1), Y[:, :outputs].squeeze(-1).repeat(4, *[1] * (outputs > 1))), [2] * 4)
    task = Task(model(outputs))
    problem = make_problem(task, Federation(held, validation=held, test=held, facts=facts), make_plan())
    return task.model.assess(problem, models, split)


def test_errors_are_means_over_devices_of_roots():
    models = {0: W, 3: Params(w=torch.zeros(2, 2).double())}
    losses, scores, more = assess(2, models, "validation", {"outputs": np.array(["a", "b"])})
    mse = [[0.5, 2.0], [5.0, 8.0]]  # of device 3, which predicts 0
    assert scores.tolist() == pytest.approx([np.mean(mse[0]), 0, 0, np.mean(mse[1])])
    assert losses.tolist() == pytest.approx((scores / 2).tolist())
    expected = np.sqrt(mse).mean(axis=0)
    assert [(m.metric, m.group, m.split) for m in more] == [("a_rmse", name, "validation") for name in "ab"]
    assert [m.value for m in more] == pytest.approx(expected)
    # scored devices and true parameters are for the test set: here device 3 only, whose truth is w = (1, 1)
    facts = {"scored": np.array([False, False, False, True]), "theta": np.ones((4, 2)), "outputs": np.array(["a"])}
    *_, more = assess(1, {k: Params(w=w["w"][:, :1]) for k, w in models.items()}, "test", facts)
    assert {m.metric: m.value for m in more} == pytest.approx(
        {"a_rmse": np.sqrt(5.0), "a_rmse_noise_free": np.sqrt((1 + 9) / 2)}
    )


def test_arms_repeat_targets_and_truth_under_their_names():
    both = build(LinearOutputs, (2,), 2, torch.Generator().manual_seed(0), start=1.0, arms=["a", "b"]).double()
    assert both.names({"outputs": np.array(["sd", "variance"])}) == ["a, sd", "a, variance", "b, sd", "b, variance"]
    assert both.names({}) == ["a", "a", "b", "b"]
    assert torch.equal(both.w[:, :2], both.w[:, 2:])  # the same start
    wide = Params(w=W["w"].repeat(1, 2))
    once = model().batch_gradient(W, Batch(X, Y))["w"]
    torch.testing.assert_close(both.batch_gradient(wide, Batch(X, Y))["w"], once.repeat(1, 2))
    torch.testing.assert_close(both.batch_gradient(wide, both.summarise(Batch(X, Y)))["w"], once.repeat(1, 2))


def test_each_output_may_have_its_own_weights():
    # the first output counts both samples (errors 0 and −1), the second the first only (error 0): sums, as size is 1
    weight = torch.tensor([[1.0, 1.0], [1.0, 0.0]]).double()
    found = model().batch_gradient(W, Batch(X, Y, weight, size=1.0))["w"]
    torch.testing.assert_close(found, torch.tensor([[-1.0, 0.0], [-2.0, 0.0]]).double())
