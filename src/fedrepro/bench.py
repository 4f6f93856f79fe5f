"""`make bench`: the engine's round beside hand-written code and other simulators, as ratios in one run.

A round is FedAvg: sampling, batches, client updates, average. Beside the engine's, with either strategy, stand
hand-written code that only takes the gradient steps (forward, backward, step) on batches that lie ready, and averages,
as a loop and as one fused vmap; and, where they are installed, pfl and Flower (fedrepro.bench_peers). All take turns;
medians with spread. `ratio` is a system's time over the engine's (the better strategy's), `not_gradients` the share of
the engine's round that bare code of the same kind does without. All may use every core: what computes in this process
is measured with one thread and with one a core, and the better of the two is told; Flower has a process a core. `apart`
is the largest difference of a parameter after some rounds from the bare loop on the same batches.

Two cases more are a whole run from process start (logistic regression on 1000 clients, ten a round, 100 rounds), and
a study as a whole, jobs in parallel, beside as many processes of pfl as there are cores.

Into results/bench/engine.csv, .svg and .png.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter
from torch import nn
from torch.func import functional_call

from fedrepro import bench_peers
from fedrepro.algorithms import ALGORITHMS
from fedrepro.bench_common import iqr, write, write_figure
from fedrepro.config import ROOT
from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.initial import build
from fedrepro.core.params import Params
from fedrepro.core.rounds import Participation, Plan, Replicate, advance, train
from fedrepro.core.task import Task
from fedrepro.files import read_json
from fedrepro.models import MODELS
from fedrepro.plotting import COLOURS, figure
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
    if bench_peers.there("pfl"):
        calls["pfl"] = bench_peers.Pfl(case, LR).round
    times: dict[tuple[str, int], list[float]] = {(system, n): [] for system in calls for n in threads()}
    for repeat in range(repeats + 1):
        for system, n in times:
            torch.set_num_threads(n)
            seconds = timed(calls[system])
            if repeat:  # the first is a warm-up
                times[system, n].append(seconds)
    torch.set_num_threads(1)
    apart = {f"fedrepro, {way}": engine_apart(case, way) for way in ("loop", "vmap")}
    if "pfl" in calls:
        apart["pfl"] = pfl_apart(case)
    if bench_peers.there("flwr"):  # its processes would take the others' cores: it runs alone, after them
        times["Flower", 1], found = bench_peers.flower_rounds(case, LR, repeats)
        apart["Flower"] = largest_difference(found, by_hand(case, repeats + 1))
    return [{**row, "apart": apart.get(row["system"])} for row in rows_of(name, times)]


def engine_apart(case: Case, way: str, rounds: int = 2) -> float:
    """The largest difference of a parameter between the engine and the bare loop on the same batches."""
    data, task, twin = case.federation(), Task(case.build()), case.build()
    plan, replicate = one_run(task, data, case.work, FEDAVG, rounds=rounds)
    start = [p.detach().clone() for p in twin.parameters()]
    for t in range(rounds):
        advance(task, [replicate], plan, strategy(way), t)
        rng = streams.generator("bench", 0, "batches", t)
        drawn = case.work.draw(data.train, range(case.clients), t, rng).values()
        total = [torch.zeros_like(p) for p in start]
        bare_round(twin, start, [[(b.x, b.y) for b in mine] for mine in drawn], total)
        start = total
    named = dict(zip(dict(twin.named_parameters()), start, strict=True))
    return largest_difference(replicate.algorithm.model(replicate.state, None, -1), named)


def pfl_apart(case: Case) -> float:
    """The same of pfl, whose batches come in the order of the samples."""
    simulator = bench_peers.Pfl(case, LR)
    simulator.rounds(1)  # two, with the one that it does not tell
    return largest_difference(simulator.parameters(), by_hand(case, 2))


def largest_difference(found: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> float:
    return max(float((found[name] - value).abs().max()) for name, value in expected.items())


def threads() -> list[int]:
    return sorted({1, os.cpu_count() or 1})


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call, or what it says itself that it took."""
    begin = time.perf_counter()
    said = call()
    return said if isinstance(said, float) else time.perf_counter() - begin


def rows_of(case: str, times: dict[tuple[str, int], list[float]]) -> list[dict]:
    """A row a system, with the number of threads that it is fastest with."""
    middle = {key: statistics.median(seconds) for key, seconds in times.items()}
    best = {system: min((key for key in times if key[0] == system), key=middle.get) for system, _ in times}
    ours = min(middle[key] for system, key in best.items() if system.startswith("fedrepro"))
    rows = []
    for system, key in best.items():
        bare = best.get(f"bare {system.split()[-1]}")
        rows.append(
            {
                "case": case,
                "system": system,
                "threads": key[1],
                "median_s": middle[key],
                "iqr_s": iqr(times[key]),
                "ratio": middle[key] / ours,
                "not_gradients": None if bare is None else 1 - middle[bare] / middle[key],
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
    return rows_of("whole run, 1000 clients", {(system, 1): seconds for system, seconds in times.items()})


STUDY, STUDY_SCALE = "sgld", "demo"
STUDY_MODEL = Case("softmax", (60,), clients=10, steps=30)  # most of the study's runs; the others' model is larger
PFL_SECONDS = 8


def study_run(results: Path) -> tuple[float, int]:
    """(seconds, gradient steps) of the study as `make reproduce` runs it: data, training, figures, notebook, report."""
    command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "all"]
    command += ["--config", f"scale={STUDY_SCALE}", f"only={STUDY}", f"results={results}", "--", "all"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, "PATH": path})
    seconds = time.perf_counter() - begin
    return seconds, sum(read_json(path)["gradient_steps"] for path in results.glob("*/runs/**/*.json"))


def pfl_pace() -> float:
    """Gradient steps a second of pfl in this process, for some seconds."""
    torch.set_num_threads(1)
    simulator, rounds, begin = bench_peers.Pfl(STUDY_MODEL, LR), 0, time.perf_counter()
    while time.perf_counter() - begin < PFL_SECONDS:
        simulator.rounds(20)
        rounds += 21  # with the one that it does not tell
    return rounds * STUDY_MODEL.clients * STUDY_MODEL.steps / (time.perf_counter() - begin)


def pfl_paces(processes: int) -> list[float]:
    """The same in several processes at once; its own would not do: pfl wants to be in a main process."""
    command = [sys.executable, "-m", "fedrepro.bench", "--pfl-pace"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return [float(process.communicate()[0].split()[-1]) for process in running]


def measure_study(repeats: int) -> list[dict]:
    """Seconds of the study's gradient steps: of the study as a whole, and of pfl's processes, one a core."""
    times: dict[tuple[str, int], list[float]] = {("fedrepro", 1): []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            seconds, steps = study_run(Path(folder))
        times["fedrepro", 1].append(seconds)
        if bench_peers.there("pfl"):
            pace = sum(pfl_paces(os.cpu_count() or 1))
            times.setdefault(("pfl", 1), []).append(steps / pace)
    return rows_of(f"study {STUDY}, {steps / 1e6:.3g} M steps", times)


def draw(table: pd.DataFrame) -> Figure:
    """A system's time over the engine's, a panel a case."""
    cases = table["case"].unique()
    fig, axes = figure(2, 3, width=9.4, height=2.1)
    for ax, case in zip(axes.flat, cases, strict=True):
        own = table[table["case"] == case].iloc[::-1]
        colours = [COLOURS[0] if system.startswith("fedrepro") else "#999999" for system in own["system"]]
        ax.barh(own["system"], own["ratio"], color=colours, height=0.6)
        ax.set(xscale="log", title=case, xlim=(0.5, 2.5 * own["ratio"].max()))
        ax.axvline(1, color="#555555", linewidth=0.8, linestyle=":")
        for place, ratio in enumerate(own["ratio"]):
            ax.annotate(f" {ratio:.2g}" if ratio < 10 else f" {ratio:.0f}", (ratio, place), va="center", fontsize=8)
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    for ax in axes[1]:
        ax.set_xlabel("time, in that of the engine")
    return fig


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--whole-run"]:
        whole_run(arguments[1])
        return 0
    if arguments == ["--pfl-pace"]:
        sys.stdout.write(f"{pfl_pace()}\n")
        return 0
    repeats = int(arguments[0]) if arguments else 15
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = []
    for name in CASES:
        rows += measure(name, repeats)
        sys.stdout.write(f"{name}: done\n")
        sys.stdout.flush()
    rows += [*measure_whole_run(min(repeats, 5)), *measure_study(min(repeats, 5))]
    table = pd.DataFrame(rows)
    write_figure("engine", draw(table))
    write("engine", table, digits=4)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
