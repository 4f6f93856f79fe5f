"""`make bench`, growth: what a round costs as clients become many, alternating between the sizes, medians with spread.

- clients a round: 1000 in all, few to many of them drawn; the time grows along a line.
- clients in all: as many drawn from ever more; the time stays, and a client takes the memory of its samples and little
  beside.
- devices of a Gaussian process: all take part in every round.

Time is that of the processor, so that a busy machine does not count. Into results/bench/growth.csv, .svg and .png.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from fedrepro.bench.common import beginning_with, iqr, times_as_long, write, write_figure
from fedrepro.bench.rounds import one_run
from fedrepro.core import parts, streams
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import build
from fedrepro.core.rounds import advance
from fedrepro.core.task import Task
from fedrepro.report.plotting import COLOURS, figure
from fedrepro.workflow.train_job import keep_freed_memory

SAMPLES, INPUTS, CLASSES = 10, 60, 10
DRAWN = (5, 10, 20, 40, 80)
TOTAL = (100, 1_000, 10_000, 100_000)
DEVICES = (5, 10, 20, 40)
TURN = 0.1  # seconds
LABELS = {
    "clients a round": "clients drawn, of 1000",
    "clients in all": "clients in all, 10 drawn",
    "devices of a Gaussian process": "devices, all taking part",
}
Round = Callable[[int], None]


def softmax_round(clients: int, drawn: int) -> Round:
    """A round of FedAvg on softmax regression, for `drawn` of `clients` clients with ten samples each."""
    rng = streams.generator("bench", clients, "data")
    rows = clients * SAMPLES
    x = torch.from_numpy(rng.standard_normal((rows, INPUTS), dtype=np.float32))
    y = torch.from_numpy(rng.integers(0, CLASSES, rows))
    data = Federation(Holdings(Samples(x, y), np.arange(rows), np.arange(clients + 1) * SAMPLES))
    model = build(parts.model("softmax"), (INPUTS,), CLASSES, streams.torch_generator("bench", 0, "init"))
    return _round(Task(model), data, LocalWork(epochs=5, batch=SAMPLES), drawn, parts.algorithm("fedavg")(lr=0.05))


def gp_round(devices: int) -> Round:
    """A round of FGPR: every device takes five steps on batches of 32 of its 64 points."""
    rng = streams.generator("bench", devices, "data")
    rows = devices * 64
    x = torch.from_numpy(rng.uniform(size=(rows, 2)))
    y = torch.sin(6 * x[:, 0]) + 0.1 * torch.from_numpy(rng.normal(size=rows))
    data = Federation(Holdings(Samples(x, y), np.arange(rows), np.arange(devices + 1) * 64))
    model = build(parts.model("gaussian_process"), (2,), 1, streams.torch_generator("bench", 0, "init")).double()
    return _round(Task(model), data, LocalWork(steps=5, batch=32), devices, parts.algorithm("fgpr")(lr=0.01))


def _round(task: Task, data: Federation, work: LocalWork, drawn: int, algorithm) -> Round:
    plan, replicate = one_run(task, data, work, algorithm, drawn)
    run = strategy("vmap")
    return lambda t: advance(task, [replicate], plan, run, t)


def times(rounds: Mapping[int, Round], repeats: int) -> dict[int, list[float]]:
    """Seconds of the processor of a round of each size, taking turns; each turn is as many rounds as take TURN."""
    counts = {}
    for size, run in rounds.items():
        run(0)
        begin = time.process_time()
        run(1)
        counts[size] = max(1, round(TURN / max(time.process_time() - begin, 1e-6)))
    found: dict[int, list[float]] = {size: [] for size in rounds}
    for repeat in range(repeats):
        for size, run in beginning_with(repeat, rounds.items()):
            begin = time.process_time()
            for t in range(counts[size]):
                run(repeat * counts[size] + t)
            found[size].append((time.process_time() - begin) / counts[size])
    return found


def resident() -> int:
    """Bytes of this process' memory, now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def memory(clients: int, drawn: int = 10) -> float:
    """Bytes per client beyond its samples and labels, after ten rounds."""
    before = resident()
    run = softmax_round(clients, drawn)
    for t in range(10):
        run(t)
    return (resident() - before) / clients - SAMPLES * (4 * INPUTS + 8)


def measure(repeats: int, drawn=DRAWN, total=TOTAL, devices=DEVICES) -> pd.DataFrame:
    """One row per size: seconds of a round with their spread, also over those of the smallest size in the same turn;
    memory."""
    rows = []
    extra = {size: memory(size) for size in total[-1:]} if Path("/proc/self/statm").exists() else {}
    families = {
        "clients a round": {n: softmax_round(1_000, n) for n in drawn},
        "clients in all": {n: softmax_round(n, 10) for n in total},
        "devices of a Gaussian process": {n: gp_round(n) for n in devices},
    }
    for what, rounds in families.items():
        found = times(rounds, repeats)
        smallest = found[next(iter(rounds))]
        for size, seconds in found.items():
            beyond = extra.get(size) if what == "clients in all" else None
            rows.append(
                {
                    "what": what,
                    "size": size,
                    "median_s": statistics.median(seconds),
                    "iqr_s": iqr(seconds),
                    "times_the_smallest": times_as_long(seconds, smallest),
                    "bytes_a_client_beyond_its_data": beyond,
                }
            )
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Milliseconds per round over the size, beside a fitted line; a level one where time should not grow."""
    fig, axes = figure(1, 3, width=9.4, height=2.8)
    for ax, (what, own) in zip(axes[0], table.groupby("what", sort=False), strict=True):
        milliseconds = 1000 * own["median_s"]
        ax.errorbar(own["size"], milliseconds, yerr=500 * own["iqr_s"], marker="o", markersize=4, color=COLOURS[0])
        if what == "clients in all":
            ax.axhline(milliseconds.median(), color="#555555", linewidth=0.8, linestyle=":")
            ax.set(xscale="log")
        else:
            slope, start = np.polyfit(own["size"], milliseconds, 1)
            ax.plot(own["size"], start + slope * own["size"], color="#555555", linewidth=0.8, linestyle=":")
            ax.set_xticks(own["size"])
            ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set(xlabel=LABELS[what], ylim=(0, None), title=what)
    axes[0, 0].set_ylabel("ms a round (processor)")
    return fig


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    keep_freed_memory()
    table = measure(int(arguments[0]) if arguments else 40)
    write_figure("growth", draw(table))
    write("growth", table, digits=4)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
