"""A round of FedAvg by the engine with either strategy, by bare code and by other simulators, in turns. Bare code only
takes the gradient steps (forward, backward, step) on prepared batches and averages: as a loop and as one fused vmap."""

import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.bench import peers
from fedrepro.bench.case import LR, Case
from fedrepro.bench.common import beginning_with, middle, times_as_long
from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.core.params import Params
from fedrepro.core.replicates import Participation, Plan, Replicate
from fedrepro.core.rounds import advance, train
from fedrepro.core.task import Task

#: the engine's strategies, and the loop by hand
WAYS = ("loop", "vmap", "bare")
FEDAVG, THREADS = FedAvg(lr=LR), sorted({1, os.cpu_count() or 1})
Steps = Sequence[tuple[Tensor, Tensor]]  # the batches of one client
Times = dict[tuple[str, int], list[float]]  # (system, threads) → seconds, turn by turn
CASES = {
    "softmax 60-10": Case("softmax", (60,)),
    "mlp 784-200-10": Case("mlp", (784,), {"hidden": [200]}),
    "cnn 32x32x3": Case("cnn", (3, 32, 32)),
    "lenet-5 28x28": Case("lenet5", (1, 28, 28), clients=10, batch=16),  # as published
}


def one_run(
    task: Task, data: Federation, work: LocalWork, algorithm: Algorithm, sampled: int | None = None, rounds: int = 1
) -> tuple[Plan, Replicate]:
    """A run of the engine before its first round; `sampled` clients take part, or all."""
    participation = Participation(sampled)
    plan = Plan("bench", rounds, work, participation, evaluate_every=10**9, client_metrics="never")
    steps, _ = work.steps_for(int(data.train.sizes[0]))
    problem = Problem(task, data, participation.shares(data), steps)
    replicate = Replicate("", 0, algorithm, problem, task.parameters())
    replicate.state = algorithm.init(problem, replicate.w)
    return plan, replicate


def bare_round(model: nn.Module, start: list[Tensor], batches: Sequence[Steps], total: list[Tensor]) -> None:
    """The least that a simulator must do: each client's gradient steps from the server's model, and their mean."""
    parameters: list[Tensor] = list(model.parameters())
    for steps in batches:
        with torch.no_grad():
            torch._foreach_copy_(parameters, start)
        for x, y in steps:
            gradients = torch.autograd.grad(F.cross_entropy(model(x), y), parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradients, alpha=-LR)
        with torch.no_grad():
            torch._foreach_add_(total, parameters, alpha=1 / len(batches))


def bare_vmap(model: nn.Module, start: dict[str, Tensor], x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The same as one fused computation over the clients: x [C, T, B, ...], y [C, T, B]."""

    def one_client(w: dict[str, Tensor], x: Tensor, y: Tensor) -> dict[str, Tensor]:
        for t in range(x.shape[0]):
            at = x[t], y[t]
            g = torch.func.grad(lambda w, at=at: F.cross_entropy(functional_call(model, w, (at[0],)), at[1]))(w)
            w = {k: torch.add(v, g[k], alpha=-LR) for k, v in w.items()}
        return w

    return {k: v.mean(0) for k, v in torch.func.vmap(one_client, in_dims=(None, 0, 0))(start, x, y).items()}


def measure(name: str, repeats: int) -> list[dict[str, Any]]:
    """Rows of the csv for one case: bare code, the engine with either strategy, and the installed peers."""
    case = CASES[name]
    data, task = case.federation(), Task(case.build())
    plan, replicate = one_run(task, data, case.work, FEDAVG)
    twin = case.build()
    named = {name: p.detach().clone() for name, p in twin.named_parameters()}
    start = list(named.values())
    drawn = drawn_batches(case, data, 0)
    x, y = (torch.stack([torch.stack([b[i] for b in client]) for client in drawn]) for i in range(2))
    calls: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare_round(twin, start, drawn, [torch.zeros_like(p) for p in start]),
        "bare vmap": lambda: bare_vmap(twin, named, x, y),
    }
    for way in ("loop", "vmap"):
        calls[f"fedrepro, {way}"] = partial(advance, task, [replicate], plan, strategy(way), 0)
    if peers.there("pfl"):
        pfl = peers.Pfl(case, LR)
        calls["pfl"] = lambda: pfl.rounds(1)[0]
    times: Times = {(system, n): [] for system in calls for n in THREADS}
    for repeat in range(repeats + 1):
        for system, n in beginning_with(repeat, times):
            torch.set_num_threads(n)
            seconds = timed(calls[system])
            if repeat:  # the first is a warm-up
                times[system, n].append(seconds)
    torch.set_num_threads(1)
    single, double = ({way: after_rounds(case, way, d) for way in WAYS} for d in (torch.float32, torch.float64))
    apart = {"bare loop": largest_difference(single["bare"], double["bare"])}
    apart |= {f"fedrepro, {way}": largest_difference(single[way], single["bare"]) for way in ("loop", "vmap")}
    exact = {f"fedrepro, {way}": largest_difference(double[way], double["bare"]) for way in ("loop", "vmap")}
    if "pfl" in calls:
        simulator = peers.Pfl(case, LR)  # its batches follow the order of the samples
        simulator.rounds(1)  # and one before
        apart["pfl"] = largest_difference(simulator.parameters(), by_hand(case, 2))
    if peers.there("flwr"):  # after the others, as its processes would take their cores
        times["Flower", 1], found = peers.flower_rounds(case, LR, repeats)
        apart["Flower"] = largest_difference(found, by_hand(case, repeats + 1))
    rows = rows_of(name, times)
    return [{**row, "apart": apart.get(row["system"]), "apart_double": exact.get(row["system"])} for row in rows]


def drawn_batches(case: Case, data: Federation, t: int) -> list[Steps]:
    """The batches of each client in round t, as the engine draws them."""
    drawn = case.work.draw(data.train, range(case.clients), t, streams.generator("bench", 0, "batches", t))
    return [[(b.x, b.y) for b in mine] for mine in drawn.values()]


def after_rounds(case: Case, way: Any, dtype: torch.dtype, rounds: int = 2) -> Mapping[str, Tensor]:
    """The server's model after rounds of the engine with a strategy, or of the `bare` loop on the same batches."""
    if way == "bare":
        data = case.federation(dtype)
        return bare_model(case.build(dtype), (drawn_batches(case, data, t) for t in range(rounds)))
    return engine_model(case, rounds, way=way, dtype=dtype)


def bare_model(model: nn.Module, rounds: Iterable[Sequence[Steps]]) -> dict[str, Tensor]:
    """The model after rounds of the bare loop, given the batches of each."""
    start: list[Tensor] = [p.detach().clone() for p in model.parameters()]
    for batches in rounds:
        bare_round(model, start, batches, total := [torch.zeros_like(p) for p in start])
        start = total
    return dict(zip(dict(model.named_parameters()), start, strict=True))


def largest_difference(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    return max(float((found[name] - value).abs().max()) for name, value in expected.items())


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call: the number that it returns, if any, else measured here."""
    begin = time.perf_counter()
    returned = call()
    return returned if isinstance(returned, float) else time.perf_counter() - begin


def rows_of(case: str, times: Times) -> list[dict[str, Any]]:
    """One row per system, with its fastest number of threads."""
    median = {key: statistics.median(seconds) for key, seconds in times.items()}
    best = {system: min((key for key in times if key[0] == system), key=median.__getitem__) for system, _ in times}
    ours = min((key for system, key in best.items() if system.startswith("fedrepro")), key=median.__getitem__)
    rows = []
    for system, key in best.items():
        bare, seconds = best.get(f"bare {system.split()[-1]}"), times[key]
        row = {"case": case, "system": system, "threads": key[1], **middle(seconds)}
        row["ratio"] = times_as_long(seconds, times[ours])
        rows.append({**row, "not_gradients": None if bare is None else 1 - times_as_long(times[bare], seconds)})
    return rows


def by_hand(case: Case, rounds: int) -> dict[str, Tensor]:
    """The model after rounds of the bare loop, with batches in the order of the samples."""
    clients = case.client_tensors()
    batches = [list(zip(x.split(case.batch), y.split(case.batch), strict=True)) for x, y in clients]
    return bare_model(case.build(), itertools.repeat(batches, rounds))


def engine_model(
    case: Case, rounds: int, sampled: int | None = None, way: Any = "vmap", dtype: torch.dtype = torch.float32
) -> Params:
    """The server's model after the engine's rounds."""
    task = Task(case.build(dtype))
    plan, replicate = one_run(task, case.federation(dtype), case.work, FEDAVG, sampled, rounds)
    train(task, [replicate], plan, strategy(way))
    return replicate.algorithm.model(replicate.state, None, -1)
