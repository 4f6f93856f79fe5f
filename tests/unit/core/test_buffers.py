"""Models with buffers: batch norm's running statistics are sent and averaged, gradient steps leave them alone, and
padding does not enter them. The reference is torch's batch norm in a plain training loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.core import clients, streams
from fedrepro.core.federation import Batch, Batches, LocalWork
from fedrepro.core.model import BatchNorm
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from tests.builders import EXPERIMENT, federations, make_plan, make_task, run

WHOLE = {0: (6, 3, 6)}  # batches of three without padding
RAGGED = {0: (5, 3, 8)}


def task_and_data(sizes=WHOLE, norm="batch"):
    return make_task("resnet9", norm=norm), federations("resnet9", sizes)


def twin(model: nn.Module) -> nn.Module:
    """The same network with torch's batch norm."""
    copy = type(model)((2, 32, 32), 3, width=2, norm="group").to(torch.float64)
    for module in copy.modules():
        if hasattr(module, "norm"):
            module.norm = nn.BatchNorm2d(module.convolution.out_channels).to(torch.float64)
    return copy


NAMES = {"mean": "running_mean", "variance": "running_var"}


def torchs_name(name: str) -> str:
    head, _, last = name.rpartition(".")
    return f"{head}.{NAMES.get(last, last)}"


def load(model: nn.Module, w: Params) -> None:
    model.load_state_dict({torchs_name(k): v for k, v in w.items()}, strict=False)


def plain_round(task, federation, w: Params, lr: float, round: int, mu: float = 0.0) -> Params:
    """FedAvg with torch's modules and optimiser; each client's batches without padding."""
    rng = streams.generator(EXPERIMENT, 0, "batches", round)
    drawn = LocalWork(epochs=2, batch=3).draw(federation.train, range(len(federation)), round, rng)
    sizes, total = federation.train.sizes, None
    for k, batches in drawn.items():
        model = twin(task.model)
        load(model, w)
        optimiser = torch.optim.SGD(model.parameters(), lr=lr)
        for batch in batches:
            held = slice(None) if batch.weight is None else batch.weight > 0
            optimiser.zero_grad()
            loss = cross_entropy(model(batch.x[held]), batch.y[held])
            for name, p in model.named_parameters() if mu else ():
                loss = loss + 0.5 * mu * (p - w[name]).square().sum()
            loss.backward()
            optimiser.step()
        state = model.state_dict()
        mine = {name: state[torchs_name(name)] * float(sizes[k] / sizes.sum()) for name in w}
        total = mine if total is None else {name: total[name] + mine[name] for name in w}
    return Params(total)


@pytest.mark.parametrize(
    ("sizes", "strategy"), [(WHOLE, "loop"), (WHOLE, "vmap"), (RAGGED, "loop")], ids=["loop", "vmap", "padded"]
)
@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_two_rounds_are_those_of_a_plain_training_loop(sizes, strategy, mu):
    task, by_seed = task_and_data(sizes)
    algorithm = FedProx(lr=0.1, mu=mu) if mu else FedAvg(lr=0.1)
    found = run(task, by_seed, make_plan(2, LocalWork(epochs=2, batch=3)), algorithm, strategy=strategy)
    w = task.start
    for round in range(2):
        w = plain_round(task, by_seed[0], w, 0.1, round, mu)
    assert list(found.w) == list(w)
    assert sum(name.rpartition(".")[2] in NAMES for name in w) == 2 * 8
    for name, value in w.items():
        torch.testing.assert_close(found.w[name], value, rtol=1e-9, atol=1e-11, msg=name)
        assert name.endswith("convolution.bias") or not torch.equal(found.w[name], task.start[name])


def test_evaluation_uses_the_running_statistics():
    task, by_seed = task_and_data()
    w = run(task, by_seed, make_plan(1, LocalWork(epochs=2, batch=3)), FedAvg(lr=0.1)).w
    held = by_seed[0].train
    loss, _ = task.evaluate(w, held, [0, 1, 2])
    model = twin(task.model)
    load(model, w)
    model.eval()
    batch = held.full_batch(2)
    assert loss[2].item() == pytest.approx(cross_entropy(model(batch.x), batch.y).item(), rel=1e-9)
    # a sample's loss does not depend on the other clients evaluated
    assert task.evaluate(w, held, [2])[0].item() == pytest.approx(loss[2].item(), rel=1e-12)
    assert task.model.training


def test_a_gradient_carries_the_buffers_and_changes_nothing():
    task, by_seed = task_and_data()
    w, batch = task.parameters(), by_seed[0].train.full_batch(0)
    kept = w.clone()
    gradient = task.gradient(w, batch)
    assert torch.equal(w.flatten(), kept.flatten())
    assert not set(gradient) & set(gradient.buffers)
    assert set(gradient) | set(gradient.buffers) == set(w)
    pulled = gradient.add(w - w, alpha=1.0)
    assert pulled.buffers is gradient.buffers
    moved = w.clone().descend(pulled, 0.5)
    for name in w:
        expected = gradient.buffers[name] if name in gradient.buffers else w[name] - 0.5 * gradient[name]
        torch.testing.assert_close(moved[name], expected, rtol=1e-14, atol=0)


def test_a_method_that_loses_the_buffers_on_its_way_fails():
    task, by_seed = task_and_data()
    gradient = task.gradient(task.start, by_seed[0].train.full_batch(0))
    with pytest.raises(KeyError):
        task.parameters().descend(gradient * 2.0, 0.1)


def test_padding_is_no_part_of_the_statistics():
    task, by_seed = task_and_data()
    batch = by_seed[0].train.full_batch(0)
    padded = batch._replace(weight=torch.tensor([1.0, 1, 0, 1, 1, 0], dtype=torch.float64))
    kept = [0, 1, 3, 4]
    short = Batch(batch.x[kept], batch.y[kept])
    one, other = (task.gradient(task.start, b) for b in (padded, short))
    torch.testing.assert_close(one.flatten(), other.flatten(), rtol=1e-12, atol=1e-15)
    for name, value in other.buffers.items():
        torch.testing.assert_close(one.buffers[name], value, rtol=1e-12, atol=1e-15)


def test_vmap_refuses_padding():
    """Padding rows are known from the data only, and shapes under vmap must not depend on data."""
    task, by_seed = task_and_data({0: (5, 5)})
    rng = np.random.default_rng(0)
    drawn = LocalWork(epochs=1, batch=3).draw(by_seed[0].train, range(2), 0, rng)
    works = [clients.Work(FedAvg(), task.start, None, batches) for batches in drawn.values()]
    with pytest.raises(UserError, match="vmap needs whole batches"):
        clients.strategy("vmap")(task, works)


def test_a_model_without_buffers_has_none():
    task = make_task("mlp")
    batch = federations("mlp", {0: [4]})[0].train.full_batch(0)
    assert not task.gradient(task.start, batch).buffers
    assert list(task.start) == [name for name, _ in task.model.named_parameters()]


def test_batch_norm_is_torchs():
    ours, theirs = BatchNorm(3).to(torch.float64), nn.BatchNorm2d(3).to(torch.float64)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        x = torch.randn(5, 3, 4, 2, generator=generator, dtype=torch.float64) * 2 + 1
        torch.testing.assert_close(ours(x), theirs(x), rtol=1e-12, atol=1e-14)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(ours.variance, theirs.running_var, rtol=1e-12, atol=0)


def test_epochs_of_a_round():
    assert [Batches(0, steps, 3).epochs for steps in (1, 3, 4, 6)] == [1, 1, 2, 2]
