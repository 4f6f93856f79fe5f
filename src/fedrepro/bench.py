"""`make bench`: the engine's round beside hand-written code and other simulators, as ratios in one run.

A round is FedAvg: sampling, batches, client updates, average. Beside the engine's, with either strategy, stand
hand-written code that only takes the gradient steps (forward, backward, step) on batches that lie ready, and averages,
as a loop and as one fused vmap; and, where they are installed, pfl and Flower (fedrepro.bench_peers). All take turns;
medians with spread. `ratio` is a system's time over the engine's (the better strategy's), `not_gradients` the share of
the engine's round that bare code of the same kind does without. In this process one thread computes; Flower has a
process a core.

The last case is a whole run from process start: logistic regression on 1000 clients, ten a round, 100 rounds.

Into results/bench/engine.csv.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from fedrepro import bench_peers
from fedrepro.algorithms import ALGORITHMS
from fedrepro.bench_common import iqr, write
from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.initial import build
from fedrepro.core.params import Params
from fedrepro.core.rounds import Participation, Plan, Replicate, advance, train
from fedrepro.core.task import Task
from fedrepro.models import MODELS
from fedrepro.training import keep_freed_memory

LR, CLASSES = 0.05, 10
FEDAVG = ALGORITHMS["fedavg"](lr=LR)


@dataclass(frozen=True)
class Case:
    """A model on random samples of a shape, and a round: clients, each with its steps of batches."""

    model: str
    shape: tuple[int, ...]
    hyper: dict = field(default_factory=dict)
    clients: int = 50
    steps: int = 5
    batch: int = 10

    @property
    def work(self) -> LocalWork:
        return LocalWork(steps=self.steps, batch=self.batch)

    def build(self) -> nn.Module:
        return build(MODELS[self.model], self.shape, CLASSES, streams.torch_generator("bench", 0, "init"), **self.hyper)

    def federation(self) -> Federation:
        """Clients with as many samples as they take in a round."""
        rng = streams.generator("bench", 0, "data")
        mine = self.steps * self.batch
        rows = self.clients * mine
        x = torch.from_numpy(rng.normal(size=(rows, *self.shape)).astype(np.float32))
        y = torch.from_numpy(rng.integers(0, CLASSES, rows))
        return Federation(Holdings(Samples(x, y), np.arange(rows), np.arange(self.clients + 1) * mine))


CASES = {
    "softmax 60-10": Case("softmax", (60,)),
    "mlp 784-200-10": Case("mlp", (784,), {"hidden": [200]}),
    "cnn 32x32x3": Case("cnn", (3, 32, 32)),
    "lenet-5 28x28": Case("lenet5", (1, 28, 28), clients=10, batch=16),  # as paper 000 has it
}


def one_run(
    task: Task, data: Federation, work: LocalWork, algorithm: Algorithm, sampled: int | None = None, rounds: int = 1
) -> tuple[Plan, Replicate]:
    """A run of the engine, ready for its first round: `sampled` of the clients take part, or all."""
    participation = Participation(sampled)
    plan = Plan("bench", rounds, work, participation, evaluate_every=10**9, client_metrics="never")
    steps, _ = work.steps_for(int(data.train.sizes[0]))
    problem = Problem(task, data, participation.shares(data), steps)
    replicate = Replicate("", 0, algorithm, problem, task.parameters())
    replicate.state = algorithm.init(problem, replicate.w)
    return plan, replicate


def bare_round(model: nn.Module, start: Sequence[torch.Tensor], batches: Sequence[tuple], total: list) -> None:
    """What any simulator must do: every client's gradient steps from the server's model, and their mean."""
    parameters = list(model.parameters())
    for steps in batches:
        with torch.no_grad():
            torch._foreach_copy_(parameters, start)
        for x, y in steps:
            gradients = torch.autograd.grad(F.cross_entropy(model(x), y), parameters)
            with torch.no_grad():
                torch._foreach_add_(parameters, gradients, alpha=-LR)
        with torch.no_grad():
            torch._foreach_add_(total, parameters, alpha=1 / len(batches))


def bare_vmap(model: nn.Module, start: dict, x: torch.Tensor, y: torch.Tensor) -> dict:
    """The same as one fused computation over the clients: x [C, T, B, ...], y [C, T, B]."""

    def one_client(w, x, y):
        for t in range(x.shape[0]):
            at = x[t], y[t]
            g = torch.func.grad(lambda w, at=at: F.cross_entropy(functional_call(model, w, (at[0],)), at[1]))(w)
            w = {k: torch.add(v, g[k], alpha=-LR) for k, v in w.items()}
        return w

    return {k: v.mean(0) for k, v in torch.func.vmap(one_client, in_dims=(None, 0, 0))(start, x, y).items()}


def measure(name: str, repeats: int) -> list[dict]:
    """Rows of the csv for one case: bare code, the engine with either strategy, and the peers that are there."""
    case = CASES[name]
    data, task = case.federation(), Task(case.build())
    plan, replicate = one_run(task, data, case.work, FEDAVG)
    twin = case.build()
    start = [p.detach().clone() for p in twin.parameters()]
    rng = streams.generator("bench", 0, "batches", 0)
    drawn = [[(b.x, b.y) for b in mine] for mine in case.work.draw(data.train, range(case.clients), 0, rng).values()]
    x, y = (torch.stack([torch.stack([b[i] for b in client]) for client in drawn]) for i in range(2))
    named = dict(zip(dict(twin.named_parameters()), start, strict=True))
    calls: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare_round(twin, start, drawn, [torch.zeros_like(p) for p in start]),
        "bare vmap": lambda: bare_vmap(twin, named, x, y),
    }
    for way in ("loop", "vmap"):
        run_clients = strategy(way)
        calls[f"fedrepro, {way}"] = lambda run=run_clients: advance(task, [replicate], plan, run, 0)
    pfl = bench_peers.Pfl(case, LR) if bench_peers.there("pfl") else None
    times: dict[str, list[float]] = {system: [] for system in calls}
    for repeat in range(repeats + 1):
        for system, call in calls.items():
            begin = time.perf_counter()
            call()
            if repeat:  # the first is a warm-up
                times[system].append(time.perf_counter() - begin)
        if pfl and repeat:
            times.setdefault("pfl", []).extend(pfl.rounds(1))
    if bench_peers.there("flwr"):  # its processes would take the others' cores: it runs alone, after them
        times["Flower"], _ = bench_peers.flower_rounds(case, LR, repeats)
    middle = {system: statistics.median(seconds) for system, seconds in times.items()}
    ours = min(middle["fedrepro, loop"], middle["fedrepro, vmap"])
    rows = []
    for system, seconds in times.items():
        limit = middle.get(f"bare {system.split()[-1]}")
        rows.append(
            {
                "case": name,
                "system": system,
                "median_s": middle[system],
                "iqr_s": iqr(seconds),
                "ratio": middle[system] / ours,
                "not_gradients": None if limit is None else 1 - limit / middle[system],
            }
        )
    return rows


WHOLE_RUN = Case("softmax", (60,), clients=1000, steps=1)  # FLUTE's published comparison
WHOLE_RUN_SAMPLED, WHOLE_RUN_ROUNDS = 10, 100


def whole_run(system: str) -> None:
    """The whole run, in this process."""
    case, sampled, rounds = WHOLE_RUN, WHOLE_RUN_SAMPLED, WHOLE_RUN_ROUNDS
    if system == "Flower":
        bench_peers.flower_rounds(case, LR, rounds - 1, sampled=sampled)
    elif system == "pfl":
        bench_peers.Pfl(case, LR, sampled=sampled).rounds(rounds - 1)
    else:
        engine_model(case, rounds, sampled)


def by_hand(case: Case, rounds: int) -> dict[str, torch.Tensor]:
    """The model after rounds of the bare loop, every client's batches in the order of its samples."""
    model, size = case.build(), case.batch
    start = [p.detach().clone() for p in model.parameters()]
    clients = bench_peers.client_tensors(case)
    batches = [list(zip(x.split(size), y.split(size), strict=True)) for x, y in clients]
    for _ in range(rounds):
        total = [torch.zeros_like(p) for p in start]
        bare_round(model, start, batches, total)
        start = total
    return dict(zip(dict(model.named_parameters()), start, strict=True))


def engine_model(case: Case, rounds: int, sampled: int | None = None) -> Params:
    """The server's model after the engine's rounds."""
    task = Task(case.build())
    plan, replicate = one_run(task, case.federation(), case.work, FEDAVG, sampled, rounds)
    train(task, [replicate], plan, lambda works: strategy("vmap"))
    return replicate.algorithm.model(replicate.state, None, -1)


def measure_whole_run(repeats: int) -> list[dict]:
    """Seconds from the start of a process to its end, of every system that is there."""
    systems = ["fedrepro", *(s for s, module in (("pfl", "pfl"), ("Flower", "flwr")) if bench_peers.there(module))]
    times: dict[str, list[float]] = {system: [] for system in systems}
    for _ in range(repeats):
        for system in systems:
            begin = time.perf_counter()
            command = [sys.executable, "-m", "fedrepro.bench", "--whole-run", system]
            subprocess.run(command, check=True, capture_output=True)
            times[system].append(time.perf_counter() - begin)
    middle = {system: statistics.median(seconds) for system, seconds in times.items()}
    return [
        {
            "case": "whole run, 1000 clients",
            "system": system,
            "median_s": middle[system],
            "iqr_s": iqr(seconds),
            "ratio": middle[system] / middle["fedrepro"],
        }
        for system, seconds in times.items()
    ]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--whole-run"]:
        whole_run(arguments[1])
        return 0
    repeats = int(arguments[0]) if arguments else 15
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = [row for name in CASES for row in measure(name, repeats)]
    rows += measure_whole_run(min(repeats, 5))
    write("engine", pd.DataFrame(rows), digits=4)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
