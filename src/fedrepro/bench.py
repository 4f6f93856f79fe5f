"""`make bench`: how much of a round is not gradients, measured on this machine as a ratio in one run.

The engine's round (sampling, batches, client updates, average) beside hand-written code that only takes the gradient
steps (forward, backward, step) on batches that lie ready, and averages: as a loop and as one fused vmap. Alternating,
medians with spread; `not_gradients` is the share of the engine's round that bare code of the same kind does without.
Into results/bench/engine.csv.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from fedrepro import provenance
from fedrepro.algorithms import ALGORITHMS
from fedrepro.core import streams
from fedrepro.core.algorithm import Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.initial import build
from fedrepro.core.rounds import Plan, Replicate, advance
from fedrepro.core.task import Task
from fedrepro.files import write_atomically, write_json
from fedrepro.models import MODELS
from fedrepro.training import keep_freed_memory

LR, CLASSES = 0.05, 10


@dataclass(frozen=True)
class Case:
    """A model on random samples of a shape, and a round: clients, each with its steps of batches."""

    model: str
    shape: tuple[int, ...]
    hyper: dict = field(default_factory=dict)
    clients: int = 50
    steps: int = 5
    batch: int = 10

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
    "lenet-5 28x28": Case("lenet5", (1, 28, 28), clients=10, batch=16),  # as paper 000 has it
}


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
    """Rows of the csv for one case: the bare loop, and the engine with either strategy."""
    case = CASES[name]
    data, task = case.federation(), Task(case.build())
    work = LocalWork(steps=case.steps, batch=case.batch)
    plan = Plan("bench", 1, work, evaluate_every=10**9, client_metrics="never")
    problem = Problem(task, data, np.full(case.clients, 1 / case.clients), case.steps)
    replicate = Replicate("", 0, ALGORITHMS["fedavg"](lr=LR), problem, task.parameters())
    replicate.state = replicate.algorithm.init(problem, replicate.w)
    twin = case.build()
    start = [p.detach().clone() for p in twin.parameters()]
    rng = streams.generator("bench", 0, "batches", 0)
    drawn = [[(b.x, b.y) for b in mine] for mine in work.draw(data.train, range(case.clients), 0, rng).values()]
    x, y = (torch.stack([torch.stack([b[i] for b in client]) for client in drawn]) for i in range(2))
    named = dict(zip(dict(twin.named_parameters()), start, strict=True))
    calls: dict[str, Callable[[], object]] = {
        "bare loop": lambda: bare_round(twin, start, drawn, [torch.zeros_like(p) for p in start]),
        "bare vmap": lambda: bare_vmap(twin, named, x, y),
    }
    for way in ("loop", "vmap"):
        run_clients = strategy(way)
        calls[f"fedrepro, {way}"] = lambda run=run_clients: advance(task, [replicate], plan, run, 0)
    times: dict[str, list[float]] = {system: [] for system in calls}
    for repeat in range(repeats + 1):
        for system, call in calls.items():
            begin = time.perf_counter()
            call()
            if repeat:  # the first is a warm-up
                times[system].append(time.perf_counter() - begin)
    middle = {system: statistics.median(seconds) for system, seconds in times.items()}
    rows = []
    for system, seconds in times.items():
        quarter, _, three = statistics.quantiles(seconds, n=4)
        limit = middle[f"bare {system.split()[-1]}"]
        rows.append(
            {
                "case": name,
                "system": system,
                "median_s": middle[system],
                "iqr_s": three - quarter,
                "not_gradients": 1 - limit / middle[system],
            }
        )
    return rows


def main(arguments: list[str]) -> int:
    repeats = int(arguments[0]) if arguments else 15
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = [row for name in CASES for row in measure(name, repeats)]
    table = pd.DataFrame(rows)
    out = Path("results/bench/engine.csv")
    write_atomically(out, table.to_csv(index=False))
    write_json(out.with_suffix(".json"), {"machine": provenance.machine(), "versions": provenance.versions()})
    sys.stdout.write(table.to_string(index=False, float_format="{:.4f}".format) + f"\ninto {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
