"""The contracts of a model, on its `example`."""

from collections.abc import Iterator

import torch

from fedrepro.contracts.contract import Contract, hold
from fedrepro.contracts.small import federations, make_task
from fedrepro.core import parts
from fedrepro.core.model import Model, build
from fedrepro.core.task import OBJECTIVES


def contracts(name: str) -> Iterator[Contract]:
    """Those of one model."""
    yield Contract.of("an objective, and one output per sample", _has_outputs, name)
    yield Contract.of("initial values come from the generator alone", _starts_from_its_generator, name)
    yield Contract.of("a step against the gradient lowers the loss", _descends, name)


def made(name: str, seed: int = 0) -> Model:
    make = parts.model(name)
    generator = torch.Generator().manual_seed(seed)
    return build(make, make.example.inputs, make.example.outputs, generator, **make.example.hyper)


def flat(module: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def _has_outputs(name: str) -> None:
    model = made(name)
    loss, score, _ = OBJECTIVES[model.objective]
    x = torch.randn(4, *model.example.inputs, generator=torch.Generator().manual_seed(0))
    output = model(torch.zeros_like(x, dtype=torch.uint8) if model.example.symbols else x)
    y = torch.zeros(4, dtype=torch.int64) if model.objective == "cross_entropy" else torch.zeros(4)
    shapes = loss(output, y).shape, score(output, y).shape
    hold(shapes == ((4,), (4,)), f"losses and scores of four samples have the shapes {shapes}")


def _starts_from_its_generator(name: str) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        before = torch.random.get_rng_state()
        first = made(name, seed=3)
        hold(torch.equal(before, torch.random.get_rng_state()), "torch's global state is changed")
        torch.manual_seed(2)
        hold(torch.equal(flat(made(name, seed=3)), flat(first)), "they hang on torch's global state")


def _descends(name: str) -> None:
    task = make_task(name)
    batch = federations(name, {0: [20]})[0].train.full_batch(0)
    down = task.start.add(task.gradient(task.start, batch), alpha=-1e-3)
    hold(task.loss(down, batch) < task.loss(task.start, batch), "the loss does not fall")
