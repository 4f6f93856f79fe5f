"""The two ways to run the clients of a round: same numbers, same gradient steps, no unnecessary memory."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.local import Local
from fedrepro.core import clients
from fedrepro.core.algorithm import Algorithm
from fedrepro.core.clients import Work, strategy
from fedrepro.core.federation import Batches, Samples
from tests.builders import FULL_BATCH, MINI_BATCH, RAGGED, federations, make_plan, make_task, run, spying, tensors


def make_works(task, algorithms, sizes=RAGGED, work=MINI_BATCH, model="softmax", messages=None, local=None):
    """The works of one round, per algorithm and client. Without messages all get the task's own model."""
    held = federations(model, {0: sizes})[0].train
    rng = np.random.default_rng(0)
    if work.batch is None:
        batches = [Batches(3, work.epochs, whole=task.model.summarise(held.full_batch(k))) for k in range(len(sizes))]
    else:
        batches = list(work.draw(held, range(len(sizes)), 3, rng).values())
    w = task.start
    return [
        Work(a, messages[k] if messages else w, local[k] if local else None, batches[k])
        for a in algorithms
        for k in range(len(sizes))
    ]


def results(name: str, task, works) -> tuple[list, dict]:
    """(uploads, local states by place) of all works."""
    local: dict = {}
    return list(strategy(name)(task, works).take(range(len(works)), local)), local


def assert_same(task, works) -> None:
    (one, one_local), (other, other_local) = (results(name, task, works) for name in ("loop", "vmap"))
    assert list(one_local) == list(other_local)
    mine, theirs = tensors([one, list(one_local.values())]), tensors([other, list(other_local.values())])
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


# --- loop = vmap ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [MINI_BATCH, FULL_BATCH], ids=["mini-batch", "full batch"])
@pytest.mark.parametrize("model", ["linear", "softmax", "mlp"])
def test_ragged_clients_and_a_grid(model, work):
    assert_same(
        make_task(model), make_works(make_task(model), [FedAvg(lr=0.1), FedAvg(lr=0.2)], work=work, model=model)
    )


def test_clients_with_messages_of_their_own():
    task = make_task("softmax")
    messages = [task.start * (1.0 + 0.1 * k) for k in range(len(RAGGED))]
    assert_same(task, make_works(task, [FedProx(lr=0.1, mu=1.0)], messages=messages))


def test_messages_shared_by_some():
    """Clients 0, 1, 2 have one server, 3, 4, 5 another."""
    task = make_task("linear")
    a, b = task.start, task.start.add(task.start)
    for work in (MINI_BATCH, FULL_BATCH):
        messages = [a, a, a, b, b, b]
        assert_same(task, make_works(task, [FedAvg()], sizes=[6] * 6, work=work, model="linear", messages=messages))


def test_clients_with_states_of_their_own():
    task = make_task("softmax")
    local = [task.start * (1.0 + 0.1 * k) for k in range(len(RAGGED))]
    assert_same(task, make_works(task, [Local(lr=0.1)], local=local))


@pytest.mark.parametrize("size", [1, 200, 10**6])
def test_however_a_round_is_cut_into_chunks(monkeypatch, size):
    """96 bytes of parameters: at 200 bytes two clients at a time."""
    monkeypatch.setattr(clients, "CHUNK_BYTES", size)
    task = make_task("softmax")
    assert_same(task, make_works(task, [FedAvg(lr=0.1), FedAvg(lr=0.2)], sizes=[5, 5, 5, 3, 3]))


def test_of_large_images_few_clients_are_stacked_at_a_time():
    images = Samples(torch.zeros(8, 3, 32, 32, dtype=torch.uint8), torch.zeros(8), torch.zeros(1), torch.ones(1))
    batches = Batches(0, 5, samples=images, index=torch.zeros(5, 10, dtype=torch.int64))
    work = Work(FedAvg(), torch.zeros(1000), None, batches)
    assert clients._chunk(work) == 2**27 // (4 * 1000 + 32 * 10 * 4 * 3 * 32 * 32)
    flat = images._replace(x=images.x.flatten(1))
    assert clients._chunk(work._replace(batches=replace(batches, samples=flat))) == 2**27 // (4 * 1000)


@dataclass(frozen=True)
class Verbose(Algorithm):
    """Sends and keeps more than tensors: names, numbers, nothing."""

    lr: float = 0.1

    def client_update(self, task, message, local, batches):
        w = message["w"].add(task.gradient(message["w"], next(iter(batches))), alpha=-self.lr)
        upload = {"nothing": None, "w": w, "rounds": message["round"] + 1, "name": "x"}
        return upload, {"none": None, "seen": local["seen"] + len(batches), "w": w}


def test_what_is_not_a_tensor_comes_through():
    task = make_task("softmax")
    held = [{"round": 3, "w": task.start * (1.0 + k)} for k in range(3)]
    messages = [held[0], held[1], held[0], held[2], held[1], held[0]]  # some are shared
    works = make_works(task, [Verbose()], sizes=[5] * 6, messages=messages, local=[{"seen": 10} for _ in messages])
    assert_same(task, works)
    for name in ("loop", "vmap"):
        uploads, states = results(name, task, works)
        assert [(u["nothing"], u["rounds"], u["name"]) for u in uploads] == [(None, 4, "x")] * len(works)
        assert [s["seen"] for s in states.values()] == [10 + len(w.batches) for w in works]


def test_what_is_not_a_tensor_keeps_clients_apart():
    """Stacking would give all of them the number of the first."""
    task = make_task("softmax")
    local = [{"seen": k} for k in range(3)]
    works = make_works(task, [Verbose()], sizes=[5, 5, 5], messages=[{"round": 0, "w": task.start}] * 3, local=local)
    assert [s["seen"] - len(works[0].batches) for s in results("vmap", task, works)[1].values()] == [0, 1, 2]


@dataclass(frozen=True)
class Plain(Algorithm):
    """Messages, uploads and states are plain tensors; there may be no state."""

    def client_update(self, task, message, local, batches):
        return message * len(batches), None if local is None else local + message.sum()


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("size", [1, 10**6])
def test_plain_tensors(monkeypatch, keeps, size):
    """All clients at once and one by one; two share a message."""
    monkeypatch.setattr(clients, "CHUNK_BYTES", size)
    task, shared = make_task("softmax"), torch.tensor([1.0, 2.0])
    messages = [shared, torch.tensor([3.0, 4.0]), shared]
    local = [torch.tensor([float(k)]) if keeps else None for k in range(3)]
    works = make_works(task, [Plain()], sizes=[5] * 3, messages=messages, local=local)
    assert_same(task, works)
    uploads, states = results("vmap", task, works)
    steps = len(works[0].batches)
    assert [u.tolist() for u in uploads] == [[steps, 2 * steps], [3 * steps, 4 * steps], [steps, 2 * steps]]
    assert [s.tolist() for s in states.values()] == ([[3], [8], [5]] if keeps else [])


class Counting(FedAvg):
    """A client state without tensors."""

    def client_update(self, task, message, local, batches):
        return super().client_update(task, message, None, batches)[0], {"rounds": local["rounds"] + 1}


@pytest.mark.parametrize("name", ["loop", "vmap"])
def test_a_state_without_tensors_is_kept(name):
    task = make_task("softmax")
    works = make_works(task, [Counting()], sizes=[5] * 3, local=[{"rounds": 6}] * 3)
    assert results(name, task, works)[1] == {k: {"rounds": 7} for k in range(3)}


@pytest.mark.parametrize("name", ["loop", "vmap"])
def test_results_go_to_one_replicate_after_the_other(name):
    task = make_task("softmax")
    works = make_works(task, [Local(lr=0.1), Local(lr=0.2)], sizes=[5] * 3, local=[task.start] * 3)
    expected = results("loop", task, works)[0]
    handed = strategy(name)(task, works)
    for clients_of_one, start in (([2, 5, 7], 0), ([0, 1, 9], 3)):
        local: dict = {}
        uploads = list(handed.take(clients_of_one, local))
        assert list(local) == clients_of_one
        for i, (upload, state) in enumerate(zip(uploads, local.values(), strict=True)):
            torch.testing.assert_close(upload.flatten(), expected[start + i].flatten(), rtol=1e-12, atol=1e-14)
            assert torch.equal(state.flatten(), upload.flatten())


# --- no step is wasted ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("work", [MINI_BATCH, FULL_BATCH], ids=["mini-batch", "full batch"])
@pytest.mark.parametrize("model", ["linear", "softmax"])
@pytest.mark.parametrize("name", ["loop", "vmap"])
def test_as_many_gradients_as_the_batches_ask_for(gradients, name, model, work):
    task = make_task(model)
    works = make_works(task, [FedAvg(lr=0.1), FedAvg(lr=0.2)], work=work, model=model)
    results(name, task, works)
    # two settings × two epochs; in threes, 5, 3, 8, 6, 2, 5 samples are 2 + 1 + 3 + 2 + 1 + 2 = 11 batches
    expected = 2 * 2 * (11 if work.batch else 6)
    assert sum(len(w.batches) for w in works) == expected
    assert gradients.evaluations == expected


def test_clients_of_one_shape_and_settings_of_a_grid_are_one_call(gradients):
    task = make_task("softmax")
    works = make_works(task, [FedProx(lr=0.1, mu=0.5), FedProx(lr=0.2, mu=1.5)], sizes=[6, 6, 6])
    results("vmap", task, works)
    assert gradients.calls == 4  # two epochs of two batches
    assert gradients.evaluations == 4 * 6


@dataclass(frozen=True)
class Serving(FedAvg):
    """Integers and texts that only the server uses."""

    servers: int = 1
    graph: str = "ring"

    server_only: ClassVar[frozenset[str]] = frozenset({"servers", "graph"})


def test_settings_that_differ_only_at_the_server_are_one_call(gradients):
    task = make_task("linear")
    some = [Serving(servers=3), Serving(servers=1, graph="path")]
    results("vmap", task, make_works(task, some, sizes=[6, 6, 6], model="linear"))
    assert (gradients.calls, gradients.evaluations) == (4, 24)


@dataclass(frozen=True)
class Repeating(FedAvg):
    """An integer that changes the client update."""

    repeats: int = 1

    def client_update(self, task, message, local, batches):
        for _ in range(self.repeats):
            message, local = super().client_update(task, message, local, batches)
        return message, local


def test_settings_that_differ_in_whole_numbers_are_not_stacked(gradients):
    task = make_task("softmax")
    works = make_works(task, [Repeating(repeats=1), Repeating(repeats=2)], sizes=[6, 6, 6])
    results("vmap", task, works)
    assert gradients.calls == 4 + 8
    assert_same(task, works)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_the_loop_computes_a_client_when_it_is_asked_for(gradients):
    task = make_task("softmax")
    uploads = strategy("loop")(task, make_works(task, [FedAvg()], sizes=[6, 6, 6])).take(range(3), {})
    assert gradients.evaluations == 0
    counted = [gradients.evaluations for _ in uploads]
    assert counted == [4, 8, 12]


def test_an_average_does_not_hold_all_uploads():
    """While a client works, at most the first upload and the previous one are alive."""
    uploads: list[weakref.ref] = []
    alive: list[int] = []

    class Watched(FedAvg):
        def client_update(self, task, message, local, batches):
            alive.append(sum(upload() is not None for upload in uploads))
            w, local = super().client_update(task, message, local, batches)
            uploads.append(weakref.ref(w))
            return w, local

    task = make_task("softmax")
    run(task, federations("softmax", {0: [4] * 6})[0], make_plan(rounds=2), Watched())
    assert len(alive) == 12
    assert max(alive) <= 2


class Allocations(TorchDispatchMode):
    """Counts tensors of one shape that get memory of their own."""

    def __init__(self, shape):
        super().__init__()
        self.shape, self.count = tuple(shape), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = {t.untyped_storage().data_ptr() for t in tensors([args, kwargs or {}])}
        out = function(*args, **kwargs or {})
        new = [t for t in tensors(out) if t.untyped_storage().data_ptr() not in given]
        self.count += sum(sorted(t.shape) == sorted(self.shape) for t in new)
        return out


def test_a_round_of_fedavg_copies_no_more_than_one_model_per_client(gradients):
    """One gradient per step, one set of parameters per client, and the average."""
    task = make_task("mlp", features=7, hidden=[11])  # no activation of 3 samples has 7 × 11 numbers
    shape = task.start["layers.0.weight"].shape
    size, each = 4, 3
    plan = make_plan(rounds=1, work=replace(MINI_BATCH, epochs=each), client_metrics="never", evaluate_every=10)
    with Allocations(shape) as memory:
        run(task, federations("mlp", {0: [5] * size}, features=7)[0], plan, FedAvg())
    steps = size * each * 2  # clients × epochs × batches of five samples in threes
    assert gradients.evaluations == steps
    assert memory.count == steps + size + 1


def test_a_spy_changes_nothing():
    """Other tests rely on this observer."""
    task, seen = make_task("softmax"), []
    plan, federation = make_plan(work=MINI_BATCH), federations("softmax", {0: RAGGED})[0]
    watched, plain = (run(task, federation, plan, a) for a in (spying(FedAvg(), seen), FedAvg()))
    assert torch.equal(watched.w.flatten(), plain.w.flatten())
    assert len([s for s in seen if s["what"] == "client"]) == 3 * len(RAGGED)
