"""`make bench`, data: seconds and memory of every stand-in at its default size, and of the real files in DATA_DIR, each
in a fresh process, two at a time. Into results/bench/data.csv."""

import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.bench.common import two_at_a_time, write
from fedrepro.core import parts, streams
from fedrepro.data.catalogue import Source, present
from fedrepro.workflow.train_job import peak_memory_mb

#: parameters of a whole data set, where the defaults are less
WHOLE = {"shakespeare": {"roles": "all", "samples": 0}}


def measure(name: str, mode: str, folders: tuple[Path, ...]) -> dict[str, Any]:
    """Make or read one data set, in this process."""
    parameters = WHOLE.get(name, {}) if mode == "real" else {}
    begin = time.perf_counter()
    data = parts.dataset(name).load(Source(streams.generator(name, -1, "data"), mode, folders), **parameters)
    seconds = time.perf_counter() - begin
    about = {"data": name, "kind": data.kind, "samples": len(data.train)}
    return {**about, "seconds": seconds, "peak_mb": round(peak_memory_mb())}


def main(arguments: list[str]) -> None:
    folders = tuple(map(Path, arguments))
    names_of = {n: e.files for n in parts.modules("datasets") if (e := parts.dataset(n)).files}
    here = [name for name, files in names_of.items() if present(files, folders)]
    rows, totals = [], {}
    for mode, names in (("standin", list(names_of)), ("real", here)):
        begin = time.perf_counter()
        rows += two_at_a_time(measure, names, [mode] * len(names), [folders] * len(names))
        totals[mode] = time.perf_counter() - begin
    told = "".join(f"{mode}, all, two at a time: {s:.1f} s\n" for mode, s in totals.items())
    write("data", pd.DataFrame(rows), digits=2, told=told, two_processes_s=totals)


if __name__ == "__main__":
    main(sys.argv[1:])
