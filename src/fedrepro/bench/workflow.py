"""`make bench`, workflow: the time of a whole run by rule, from its benchmark files and manifests: jobs, seconds, and
their share of the time of all cores from the first job's start to the last one's end. The workflow's own cost is idle
time, and training outside its rounds (start, reading, writing). Into results/bench/workflow.csv."""

import os
import sys
from collections import defaultdict
from pathlib import Path

import pandas as pd

from fedrepro.bench.common import write
from fedrepro.errors import UserError
from fedrepro.files import read_json


def measure(results: Path, cores: int) -> tuple[pd.DataFrame, float]:
    """(one row per rule, seconds from the first job's start to the last one's end)."""
    seconds: dict[str, list[float]] = defaultdict(list)
    begin, end = float("inf"), 0.0
    for path in (results / "benchmarks").rglob("*.tsv"):
        took, finished = float(pd.read_csv(path, sep="\t")["s"].iloc[0]), path.stat().st_mtime
        seconds[path.relative_to(results / "benchmarks").parts[0].removesuffix(".tsv")].append(took)
        begin, end = min(begin, finished - took), max(end, finished)
    if not seconds:
        raise UserError(f"{results}: no benchmark of a job: run `make reproduce` first")
    wall = end - begin
    rounds = [read_json(path)["seconds"] for path in results.glob("runs/**/*.json")]
    rows = sorted(((rule, len(took), sum(took)) for rule, took in seconds.items()), key=lambda row: -row[2])
    rows += [
        ("train_algorithm: its rounds alone", len(rounds), sum(rounds)),
        ("no job", 0, cores * wall - sum(sum(took) for took in seconds.values())),
        ("all but training's rounds", 0, cores * wall - sum(rounds)),
    ]
    table = pd.DataFrame(rows, columns=["rule", "jobs", "seconds"])
    return table.assign(share=table["seconds"] / (cores * wall)), wall


if __name__ == "__main__":
    try:
        found, seconds = measure(Path(sys.argv[1]), os.cpu_count() or 1)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    told = f"from first to last: {seconds:.0f} s\n"
    write("workflow", found, digits=3, told=told, wall_s=seconds, results=sys.argv[1])
