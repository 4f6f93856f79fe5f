"""`make bench`, the data: seconds and memory of every stand-in at its default size, and of the real files that are in
DATA_DIR, each in a process of its own, two at a time. Into results/bench/data.csv.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import pandas as pd

from fedrepro.bench.common import two_at_a_time, write
from fedrepro.core import streams
from fedrepro.data.catalogue import present
from fedrepro.data.dataset import Source
from fedrepro.data.datasets import DATASETS

#: parameters that ask for all of a data set, where the defaults do not
WHOLE = {"shakespeare": {"roles": "all", "samples": 0}}


def measure(name: str, mode: str, folders: tuple[Path, ...]) -> dict:
    """One data set made or read, in this process."""
    parameters = WHOLE.get(name, {}) if mode == "real" else {}
    begin = time.perf_counter()
    data = DATASETS[name].load(Source(streams.generator(name, -1, "data"), mode, folders), **parameters)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"data": name, "kind": data.kind, "samples": len(data.train), "seconds": seconds, "peak_mb": round(peak)}


def main(arguments: list[str]) -> int:
    folders = tuple(map(Path, arguments))
    here = [n for n, e in DATASETS.items() if e.files and present(e.files, folders)]
    rows, totals = [], {}
    for mode, names in (("standin", [n for n, e in DATASETS.items() if e.files]), ("real", here)):
        begin = time.perf_counter()
        rows += two_at_a_time(measure, names, [mode] * len(names), [folders] * len(names))
        totals[mode] = time.perf_counter() - begin
    told = "".join(f"{mode}, all, two at a time: {s:.1f} s\n" for mode, s in totals.items())
    write("data", pd.DataFrame(rows), digits=2, told=told, two_processes_s=totals)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
