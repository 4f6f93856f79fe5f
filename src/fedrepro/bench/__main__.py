"""`make bench`: the engine's round compared with hand-written code and other simulators. `[REPEATS]`

A round of FedAvg (sampling, batches, client updates, average) by the engine, by bare code and, where installed, by pfl
and Flower (fedrepro.bench.rounds), in turns; medians with spread. Columns:

- ratio: a system's time over that of the engine's better strategy, turn by turn;
- not_gradients: the share of the engine's round that bare code of the same kind does not need;
- threads: 1 or one per core, whichever is faster; Flower has one process per core;
- apart: the largest difference of a parameter after some rounds from the bare loop on the same batches, in single
  precision (apart_double: in double); for the bare loop, from itself in double precision.

Two more cases: a whole run from process start (logistic regression, 1000 clients, ten per round, 100 rounds), and every
study that declares a `WHOLE_STUDY` in its bench.py, with jobs in parallel, against one process of pfl per core. Into
results/bench/engine.csv, .svg and .png.
"""

import sys
from functools import partial

import pandas as pd
import torch
from matplotlib.figure import Figure

from fedrepro.bench import rounds, runs
from fedrepro.bench.common import write, write_figure
from fedrepro.report.plotting import COLOURS, figure, plain_ticks
from fedrepro.workflow.train_job import keep_freed_memory


def draw(table: pd.DataFrame) -> Figure:
    """A system's time over the engine's, one panel per case."""
    cases = table["case"].unique()
    fig, axes = figure(2, 3, width=9.4, height=2.1)
    for ax in axes.flat[len(cases) :]:
        ax.set_axis_off()
    for ax, case in zip(axes.flat, cases, strict=False):
        own = table[table["case"] == case].iloc[::-1]
        colours = [COLOURS[0] if system.startswith("fedrepro") else "#999999" for system in own["system"]]
        # Dots: on a log axis the length of a bar would mean nothing.
        ax.scatter(own["ratio"], range(len(own)), color=colours, s=36, zorder=3)
        ax.set_yticks(range(len(own)), own["system"])
        ax.margins(y=0.15)
        ax.set(xscale="log", title=case, xlim=(0.5, 2.5 * own["ratio"].max()))
        ax.axvline(1, color="#555555", linewidth=0.8, linestyle=":")
        for place, ratio in enumerate(own["ratio"]):
            ax.annotate(f"  {ratio:.2g}" if ratio < 10 else f"  {ratio:.0f}", (ratio, place), va="center", fontsize=8)
        plain_ticks(ax.xaxis)
        ax.set_xlabel("time, in that of the engine")
    return fig


def main(arguments: list[str]) -> None:
    repeats = int(arguments[0]) if arguments else 15
    torch.set_num_threads(1)
    keep_freed_memory()
    parts = [partial(rounds.measure, name, repeats) for name in rounds.CASES]
    parts.append(partial(runs.measure_whole_run, min(repeats, 5)))
    parts += [partial(runs.measure_study, study, min(repeats, 5)) for study in runs.whole_studies()]
    table = pd.DataFrame()
    for part in parts:  # written after each part: a later failure loses nothing
        table = pd.concat([table, pd.DataFrame(part())], ignore_index=True)
        write("engine", table, digits=4)
    write_figure("engine", draw(table))


if __name__ == "__main__":
    main(sys.argv[1:])
