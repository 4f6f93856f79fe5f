"""Shared by the parts of `make bench`: processes, turns, spread of times, files. Nothing here imports torch: a part
that measures memory would count it."""

from __future__ import annotations

import multiprocessing
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from fedrepro.evidence import provenance
from fedrepro.files import write_atomically, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path("results/bench")
T = TypeVar("T")


def two_at_a_time(call: Callable[..., T], *arguments: Sequence[Any], warm: Sequence[str] = ()) -> list[T]:
    """`call` of each set of arguments, two at a time, each in a fresh process; or in one forked from a process that has
    imported the modules `warm`, like the jobs of a local run."""
    context = multiprocessing.get_context("forkserver" if warm else "spawn")  # a plain fork would copy this process
    if isinstance(context, ForkServerContext):
        context.set_forkserver_preload(list(warm))
    with ProcessPoolExecutor(2, mp_context=context, max_tasks_per_child=1) as pool:
        return list(pool.map(call, *arguments))


def beginning_with(repeat: int, systems: Iterable[T]) -> list[T]:
    """The systems in the order of a turn: each begins a turn in turn, so that none always follows the same one."""
    known = list(systems)
    first = repeat % len(known)
    return known[first:] + known[:first]


def times_as_long(seconds: Sequence[float], others: Sequence[float]) -> float:
    """Median ratio to the other times, turn by turn: a slow turn is slow for both."""
    return statistics.median(mine / other for mine, other in zip(seconds, others, strict=True))


def iqr(seconds: Sequence[float]) -> float:
    """Interquartile range."""
    quarter, _, three = statistics.quantiles(seconds, n=4)
    return three - quarter


def middle(seconds: Sequence[float]) -> dict[str, float]:
    """The columns of a median with its spread."""
    return {"median_s": statistics.median(seconds), "iqr_s": iqr(seconds)}


def write_figure(name: str, drawn: Figure) -> None:
    """The figure as results/bench/<name>.svg and .png."""
    from fedrepro.report.plotting import save  # here: parts that only measure need no matplotlib

    for kind in ("svg", "png"):
        write_atomically(FOLDER / f"{name}.{kind}", save(drawn, kind))


def write(name: str, table: pd.DataFrame, digits: int, told: str = "", **about: Any) -> None:
    """Write the table to results/bench/<name>.csv, machine and versions to <name>.json; print the table and `told`."""
    out = FOLDER / f"{name}.csv"
    write_atomically(out, table.to_csv(index=False))
    known = {"machine": provenance.machine(), "versions": provenance.versions(), **about}
    write_json(out.with_suffix(".json"), known)
    shown = table.to_string(index=False, float_format=f"{{:.{digits}f}}".format)
    sys.stdout.write(f"{shown}\n{told}into {out}\n")
