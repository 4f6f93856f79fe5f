"""`make bench`, growth: the cost of a round as the number of clients grows; sizes alternate, medians with spread.

- clients a round: few to many, drawn from 1000; the time grows linearly.
- clients in all: ten, drawn from more and more; the time stays, and a client takes little more memory than its samples.

Processor time, so that other load on the machine does not count. Into results/bench/growth.csv, .svg and .png.
"""

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.bench.case import split_evenly
from fedrepro.bench.common import beginning_with, middle, times_as_long, write, write_figure
from fedrepro.bench.rounds import one_run
from fedrepro.core import parts, streams
from fedrepro.core.clients import strategy
from fedrepro.core.federation import LocalWork
from fedrepro.core.model import build
from fedrepro.core.rounds import advance
from fedrepro.core.task import Task
from fedrepro.report.plotting import COLOURS, figure, plain_ticks
from fedrepro.workflow.train_job import keep_freed_memory

SAMPLES, INPUTS, CLASSES = 10, 60, 10
DRAWN, TOTAL = (5, 10, 20, 40, 80), (100, 1_000, 10_000, 100_000)
TURN = 0.1  # seconds
LABELS = {"clients a round": "clients drawn, of 1000", "clients in all": "clients in all, 10 drawn"}
Round = Callable[[int], object]


def softmax_round(clients: int, drawn: int) -> Round:
    """FedAvg on softmax regression, for `drawn` of `clients` clients with ten samples each."""
    rng, rows = streams.generator("bench", clients, "data"), clients * SAMPLES
    x = torch.from_numpy(rng.standard_normal((rows, INPUTS), dtype=np.float32))
    y = torch.from_numpy(rng.integers(0, CLASSES, rows))
    model = build(parts.model("softmax"), (INPUTS,), CLASSES, streams.torch_generator("bench", 0, "init"))
    task, work, run = Task(model), LocalWork(epochs=5, batch=SAMPLES), strategy("vmap")
    plan, replicate = one_run(task, split_evenly(x, y, clients), work, FedAvg(lr=0.05), drawn)
    return lambda t: advance(task, [replicate], plan, run, t)


def times(rounds: Mapping[int, Round], repeats: int) -> dict[int, list[float]]:
    """Processor seconds per round of each size, in turns; a turn has as many rounds as fit into TURN."""
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


def memory(clients: int) -> float:
    """Resident bytes per client beyond its samples and labels, after ten rounds of ten clients."""

    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096

    before, run = resident(), softmax_round(clients, 10)
    for t in range(10):
        run(t)
    return (resident() - before) / clients - SAMPLES * (4 * INPUTS + 8)


def family(what: str, rounds: Mapping[int, Round], repeats: int) -> list[dict[str, Any]]:
    """One row per size: seconds per round with their spread, and their ratio to the smallest size in the same turn."""
    found = times(rounds, repeats)
    smallest = found[next(iter(rounds))]
    return [
        {"what": what, "size": size, **middle(seconds), "times_the_smallest": times_as_long(seconds, smallest)}
        for size, seconds in found.items()
    ]


def measure(repeats: int, drawn: Sequence[int] = DRAWN, total: Sequence[int] = TOTAL) -> pd.DataFrame:
    """The rows of both families, the last with the memory per client."""
    extra = memory(total[-1]) if Path("/proc/self/statm").exists() else None
    rows = family("clients a round", {n: softmax_round(1_000, n) for n in drawn}, repeats)
    rows += family("clients in all", {n: softmax_round(n, 10) for n in total}, repeats)
    rows[-1]["bytes_a_client_beyond_its_data"] = extra
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Milliseconds per round over the size, with a fitted line; a level one where time should not grow."""
    fig, axes = figure(1, 2, width=7.0, height=2.8)
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
            plain_ticks(ax.xaxis)
        ax.set(xlabel=LABELS[what], ylim=(0, None), title=what)
    axes[0, 0].set_ylabel("ms per round (processor)")
    return fig


def main(arguments: list[str]) -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    table = measure(int(arguments[0]) if arguments else 40)
    write_figure("growth", draw(table))
    write("growth", table, digits=4)


if __name__ == "__main__":
    main(sys.argv[1:])
