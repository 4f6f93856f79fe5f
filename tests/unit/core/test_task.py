"""Losses, gradients and scores against numbers worked by hand and against torch itself."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import functional_call

from fedrepro.core import parts
from fedrepro.core import task as task_module
from fedrepro.core.federation import Batch
from fedrepro.core.params import Params
from fedrepro.core.task import OBJECTIVES, accuracy, cross_entropy, half_squared_error, squared_error
from tests.builders import federate, federations, make_task, params


def float64(*rows) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_losses_and_scores_of_a_sample():
    logits, y = float64([0.0, 0.0], [1.0, -1.0]), torch.tensor([0, 1])
    # −log ½, and −log σ(−2) = log(1 + e²)
    torch.testing.assert_close(cross_entropy(logits, y), float64(math.log(2), math.log1p(math.exp(2))))
    assert accuracy(float64([2.0, 1.0], [1.0, -1.0]), y).tolist() == [1, 0]
    assert half_squared_error(float64(3.0, 1.0), float64(1.0, 1.0)).tolist() == [2, 0]
    assert squared_error(float64(3.0, 1.0), float64(1.0, 1.0)).tolist() == [4, 0]


def batch_of(model: str, weighted: bool) -> Batch:
    held = federations(model, {0: [6]})[0].train.full_batch(0)
    return held._replace(weight=float64(1.0, 1.0, 0.0, 1.0, 1.0, 0.0) if weighted else None)


@pytest.mark.parametrize("model", parts.modules("models"))
def test_padding_does_not_count(model):
    task = make_task(model)
    w, batch = task.start * 1.5, batch_of(model, weighted=True)
    kept = [0, 1, 3, 4]
    short = Batch(batch.x[kept], batch.y[kept])
    torch.testing.assert_close(task.loss(w, batch), task.loss(w, short), rtol=1e-12, atol=0)
    found, expected = task.gradient(w, batch), task.gradient(w, short)
    torch.testing.assert_close(found.flatten(), expected.flatten(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [n for n in parts.modules("models") if not parts.model(n).mean_loss])
def test_gradient_of_a_loss_that_is_no_mean_is_its_slope(model, weighted):
    task, h = make_task(model), 1e-6
    w, batch = Params({k: v + 0.1 for k, v in task.start.items()}), batch_of(model, weighted)
    gradient = task.gradient(w, batch).flatten()
    for j, slope in enumerate(gradient.tolist()):
        step = torch.zeros_like(gradient)
        step[j] = h
        up, down = (task.loss(_moved(w, sign * step), batch) for sign in (1, -1))
        assert slope == pytest.approx(((up - down) / (2 * h)).item(), rel=1e-6)


def _moved(w: Params, by: torch.Tensor) -> Params:
    parts = by.split([v.numel() for v in w.values()])
    return Params({k: v + part.view_as(v) for (k, v), part in zip(w.items(), parts, strict=True)})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", [n for n in parts.modules("models") if parts.model(n).mean_loss])
def test_gradient_is_torchs_own(model, weighted):
    task = make_task(model)
    w, batch = Params({k: v + 0.1 for k, v in task.start.items()}), batch_of(model, weighted)
    at = {k: v.clone().requires_grad_() for k, v in w.items()}
    losses = OBJECTIVES[task.model.objective][0](functional_call(task.model, at, (batch.x,)), batch.y)
    weight = torch.ones_like(losses) if batch.weight is None else batch.weight
    loss = (losses * weight).sum() / weight.sum()
    expected = torch.autograd.grad(loss, list(at.values()))

    gradient, value = task.gradient_and_loss(w, batch)
    for name, g in zip(at, expected, strict=True):
        torch.testing.assert_close(gradient[name], g, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(task.gradient(w, batch)[name], g, rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(value, loss.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(task.loss(w, batch), loss.detach(), rtol=1e-12, atol=0)
    assert not value.requires_grad
    assert not any(g.requires_grad for g in gradient.values())


@pytest.mark.parametrize("model", parts.modules("models"))
def test_a_gradient_leaves_its_arguments_alone(model):
    task = make_task(model)
    w, batch = task.parameters(), batch_of(model, weighted=True)
    kept = w.clone()
    task.gradient_and_loss(w, batch)
    assert torch.equal(w.flatten(), kept.flatten())
    assert not any(v.requires_grad for v in w.values())


@pytest.mark.parametrize("model", parts.modules("models"))
def test_parameters_are_a_copy(model):
    task = make_task(model)
    task.parameters().popitem()[1].fill_(99)
    assert not (task.parameters().flatten() == 99).any()


def test_evaluation_by_hand():
    # ŷ = w·x with w = 2. Client 0: (1, 2), (2, 0): losses 0, 8; squared errors 0, 16. Client 1: (1, 1): ½ and 1.
    task = make_task("linear", features=1, bias=False)
    held = federate(([[1.0], [2.0]], [2.0, 0.0]), ([[1.0]], [1.0])).train
    loss, score = task.evaluate(params(w=[2.0]), held, [0, 1])
    assert loss.tolist() == [4, 0.5]
    assert score.tolist() == [8, 1]
    assert task.score_name == "mse"
    loss, score = task.evaluate(params(w=[2.0]), held, [1])
    assert (loss.tolist(), score.tolist()) == ([0.5], [1])


def test_evaluation_does_not_depend_on_how_rows_are_cut(monkeypatch):
    task = make_task("softmax")
    held = federations("softmax", {0: [5, 3, 8]})[0].train
    whole = task.evaluate(task.parameters(), held, [0, 2])
    monkeypatch.setattr(task_module, "EVALUATION_BYTES", 4 * 3 * 8)  # four of 13 rows at a time: some clients are split
    for a, b in zip(whole, task.evaluate(task.parameters(), held, [0, 2]), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=0)
