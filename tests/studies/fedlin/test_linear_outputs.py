"""Linear regressions of several outputs: gradients and losses by hand; errors as the thesis has them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Batch
from fedrepro.core.initial import build
from fedrepro.core.params import Params
from fedrepro.core.quadratic import Quadratic
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs

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


def test_errors_are_means_over_devices_of_roots():
    task = model()
    whole = Quadratic(*(torch.stack(part) for part in zip(*[task.summarise(Batch(X, Y))] * 2, strict=True)))
    w = Params(w=torch.stack([W["w"], torch.zeros(2, 2).double()]))
    both, more = task.assess(w, whole, [0, 3], "validation", {"outputs": np.array(["a", "b"])})
    mse = [[0.5, 2.0], [5.0, 8.0]]  # of device 3, which predicts 0
    assert both[1].tolist() == pytest.approx(np.mean(mse, axis=1))
    assert both[0].tolist() == pytest.approx(np.mean(mse, axis=1) / 2)
    expected = np.sqrt(mse).mean(axis=0)
    assert more == [("a_rmse", "a", pytest.approx(expected[0])), ("a_rmse", "b", pytest.approx(expected[1]))]
    # scored devices and true parameters are for the test set: here device 3 only, whose truth is w = (1, 1)
    facts = {"scored": np.array([True, False, False, True]), "theta": np.ones((4, 2)), "outputs": np.array(["a"])}
    facts["scored"][0] = False
    one = Quadratic(whole.curvature, whole.linear[..., :1], whole.constant[..., :1])
    _, more = model(1).assess(Params(w=w["w"][..., :1]), one, [0, 3], "test", facts)
    assert dict((m, v) for m, _, v in more) == pytest.approx(
        {"a_rmse": np.sqrt(5.0), "a_rmse_noise_free": np.sqrt((1 + 9) / 2)}
    )
