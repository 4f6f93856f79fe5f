"""`make bench`, the data: seconds and memory of every stand-in at its default size, and of the real files that are in
DATA_DIR, each in a process of its own, two at a time. Into results/bench/data.csv.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from fedrepro import provenance
from fedrepro.core import streams
from fedrepro.datasets import DATASETS, Source
from fedrepro.datasets.catalogue import present
from fedrepro.files import write_atomically, write_json

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
    spawn = multiprocessing.get_context("spawn")  # a fork would carry over this process' memory
    rows, totals = [], {}
    for mode, names in (("standin", [n for n, e in DATASETS.items() if e.files]), ("real", here)):
        with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
            begin = time.perf_counter()
            rows += pool.map(measure, names, [mode] * len(names), [folders] * len(names))
            totals[mode] = time.perf_counter() - begin
    table = pd.DataFrame(rows)
    out = Path("results/bench/data.csv")
    write_atomically(out, table.to_csv(index=False))
    about = {"machine": provenance.machine(), "versions": provenance.versions(), "two_processes_s": totals}
    write_json(out.with_suffix(".json"), about)
    sys.stdout.write(table.to_string(index=False, float_format="{:.2f}".format) + "\n")
    sys.stdout.write(
        "".join(f"{mode}, all, two at a time: {s:.1f} s\n" for mode, s in totals.items()) + f"into {out}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
