"""What the parts of `make bench` share: processes of their own, the spread of times, the files. Nothing here imports
torch: a part that measures memory would count it."""

from __future__ import annotations

import multiprocessing
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from fedrepro.evidence import provenance
from fedrepro.files import write_atomically, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path("results/bench")
T = TypeVar("T")


def two_at_a_time(call: Callable, *arguments: Sequence, warm: Sequence[str] = ()) -> list:
    """`call` of each set of arguments, each in a process of its own, two at a time; from the start, or forked from one
    that has imported the modules `warm`, as the jobs of a local run are."""
    context = multiprocessing.get_context("forkserver" if warm else "spawn")  # a fork would carry over this process
    if warm:
        context.set_forkserver_preload(list(warm))
    with ProcessPoolExecutor(2, mp_context=context, max_tasks_per_child=1) as pool:
        return list(pool.map(call, *arguments))


def beginning_with(repeat: int, systems: Iterable[T]) -> list[T]:
    """The systems in the order of a turn: each begins one in its turn, so that none always comes after the same."""
    known = list(systems)
    first = repeat % len(known)
    return known[first:] + known[:first]


def times_as_long(seconds: Sequence[float], others: Sequence[float]) -> float:
    """How many times as long as the others', turn by turn, in the median: what slows a turn down slows down both."""
    return statistics.median(mine / other for mine, other in zip(seconds, others, strict=True))


def iqr(seconds: Sequence[float]) -> float:
    """The distance of the quartiles."""
    quarter, _, three = statistics.quantiles(seconds, n=4)
    return three - quarter


def write_figure(name: str, drawn: Figure) -> None:
    """The figure as results/bench/<name>.svg and .png."""
    from fedrepro.report.plotting import save  # matplotlib, which the parts that only measure do without

    for kind in ("svg", "png"):
        write_atomically(FOLDER / f"{name}.{kind}", save(drawn, kind))


def write(name: str, table: pd.DataFrame, digits: int, told: str = "", **about: Any) -> None:
    """The table as results/bench/<name>.csv, what it was measured on beside it, and both told on the terminal."""
    out = FOLDER / f"{name}.csv"
    write_atomically(out, table.to_csv(index=False))
    known = {"machine": provenance.machine(), "versions": provenance.versions(), **about}
    write_json(out.with_suffix(".json"), known)
    shown = table.to_string(index=False, float_format=f"{{:.{digits}f}}".format)
    sys.stdout.write(f"{shown}\n{told}into {out}\n")
