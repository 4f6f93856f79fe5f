"""A dense first layer kept as factors: the models that a loop over the clients finds, and none of them made where only
their sum is asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from fedrepro.algorithms import ALGORITHMS
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.core import clients
from fedrepro.core.algorithm import Algorithm
from fedrepro.core.clients import Work, strategy
from fedrepro.core.factors import Weights
from fedrepro.core.federation import LocalWork, Samples
from fedrepro.core.params import Params, Uploads, tree_bytes, weighted_sum
from fedrepro.core.task import Task
from fedrepro.studies.sa.algorithms.sa import SA
from tests.builders import holdings, make_task

INPUTS, HIDDEN = 12, 11
FIRST = "layers.0.weight"
SUMMING = [a for a in ALGORITHMS.values() if vars(a).get("sums")]


@pytest.fixture
def task() -> Task:
    return make_task("mlp", features=INPUTS, hidden=[HIDDEN])


def works(task: Task, *algorithms: Algorithm, sizes=(4, 4, 4), messages=None, batch: int = 2) -> list[Work]:
    """Two passes over the clients' samples."""
    rng = np.random.default_rng(3)
    rows = sum(sizes)
    samples = Samples(torch.from_numpy(rng.normal(size=(rows, INPUTS))), torch.from_numpy(rng.integers(0, 2, rows)))
    batches = LocalWork(epochs=2, batch=batch).draw(holdings(samples, sizes), range(len(sizes)), 2, rng)
    messages = messages or [task.start] * len(sizes)
    return [Work(a, messages[k], None, batches[k]) for a in algorithms for k in range(len(sizes))]


def uploads(way: str, task: Task, works: list[Work]) -> Uploads:
    return strategy(way)(task, works).take(range(len(works)), {})


def assert_factored_as_looped(task: Task, works: list[Work]) -> None:
    """Each client's model, and the weighted sum of all."""
    weights = np.linspace(0.1, 0.9, len(works))
    factored = uploads("vmap", task, works)
    assert isinstance(factored.stack()[FIRST], Weights)
    for one, other in zip(uploads("loop", task, works), factored, strict=True):
        assert list(one) == list(other)
        torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)
    one, other = (weighted_sum(uploads(way, task, works), weights) for way in ("loop", "vmap"))
    torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)


def test_one_step_by_hand():
    """W ← W − a δᵀx: with d = −a δ, W = [[1, 0], [0, 1]] and one sample x = (3, 4), δ = (1, −1), a = 1/2."""
    weight = torch.eye(2)
    made = Weights(weight, d=torch.tensor([[[-0.5, 0.5]]]), x=torch.tensor([[[3.0, 4.0]]]))
    expected = torch.tensor([[1 - 1.5, -2.0], [1.5, 1 + 2.0]])
    assert torch.equal(made.dense(), expected[None])
    assert torch.equal(made.weighted_sum(torch.tensor([2.0])), 2 * expected)


@pytest.mark.parametrize("algorithm", SUMMING, ids=lambda a: a.__name__)
def test_every_method_that_says_it_sums(task, algorithm):
    assert_factored_as_looped(task, works(task, algorithm(lr=0.3)))


def test_which_methods_say_so():
    assert {FedAvg, FedProx, SA} == set(SUMMING)


def test_a_grid_of_steps_is_one_stack(task):
    assert_factored_as_looped(task, works(task, FedProx(lr=0.3, mu=0.2), FedProx(lr=0.1, mu=1.5)))


def test_clients_with_servers_of_their_own(task):
    messages = [task.start * (1.0 + 0.1 * k) for k in range(3)]
    assert_factored_as_looped(task, works(task, FedProx(lr=0.3, mu=0.2), messages=messages))


def test_padding(task):
    assert_factored_as_looped(task, works(task, FedAvg(lr=0.3), sizes=(3, 3)))


def test_a_round_cut_into_chunks(task, monkeypatch):
    monkeypatch.setattr(clients, "CHUNK_BYTES", 2 * tree_bytes(task.start))
    cut = works(task, FedAvg(lr=0.3), sizes=(4, 4, 4, 4, 4))
    for one, other in zip(uploads("loop", task, cut), uploads("vmap", task, cut), strict=True):
        torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)


def test_what_is_sent_is_counted_as_models(task):
    found = {}
    for way in ("loop", "vmap"):
        sent = uploads(way, task, works(task, FedAvg()))
        sent.count()
        weighted_sum(sent, [1.0] * 3)
        found[way] = sent.bytes
    assert found["loop"] == found["vmap"] == 3 * tree_bytes(task.start)


def test_parts_of_it_are_those_of_its_clients(task):
    """As two replicates take theirs from one stack."""
    both = works(task, FedAvg(lr=0.3), FedAvg(lr=0.1))
    handed = strategy("vmap")(task, both)
    parts = [weighted_sum(handed.take(range(3), {}), [1.0, 2.0, 3.0]) for _ in range(2)]
    for part, mine in zip(parts, (both[:3], both[3:]), strict=True):
        alone = weighted_sum(uploads("loop", task, mine), [1.0, 2.0, 3.0])
        torch.testing.assert_close(dict(part), dict(alone), rtol=1e-9, atol=1e-12)


def test_more_samples_than_the_layer_is_wide_are_not_worth_it(task):
    many = works(task, FedAvg(), sizes=(6, 6))  # twelve in two passes, eleven units
    assert isinstance(uploads("vmap", task, many).stack()[FIRST], torch.Tensor)


@dataclass(frozen=True)
class Squared(FedAvg):
    """What inherits may do what it likes."""

    def direction(self, task, w, batch, w_server):
        return Params({k: v * v.abs() for k, v in task.gradient(w, batch).items()})


def test_what_inherits_does_not_say_so(task):
    mine = works(task, Squared(lr=0.3))
    assert isinstance(uploads("vmap", task, mine).stack()[FIRST], torch.Tensor)
    for one, other in zip(uploads("loop", task, mine), uploads("vmap", task, mine), strict=True):
        torch.testing.assert_close(dict(one), dict(other), rtol=1e-9, atol=1e-12)


@dataclass(frozen=True)
class AsksForALoss(FedAvg):
    sums = True

    def direction(self, task, w, batch, w_server):
        task.loss(w, batch)
        return task.gradient(w, batch)


def test_what_has_no_factors_is_refused_by_name(task):
    with pytest.raises(NotImplementedError, match="by factors"):
        uploads("vmap", task, works(task, AsksForALoss()))
