"""`make bench`, linear models: the cases of thesis ch. 3 at their published size, all 30 runs, two cases at
a time, each in a process of its own from its data to its written metrics. Into results/bench/linear.csv.

What is timed is what a table prints: HM1 and Separate under one reading of the noise for Table 3.1, HM2 with the lasso
and the ridge prior for Table 3.2. The studies themselves run more variants beside these.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from fedrepro.bench.common import two_at_a_time, write
from fedrepro.core.experiment import Experiment, load_experiment
from fedrepro.files import read_json

IMPORTED = ("fedrepro.workflow.train_job", "torch._dynamo")  # before the first case, for all of them
#: what is timed → (algorithm, its variants, experiments)
CASES = {
    "HM1 and Separate": ("hm1", ("box", "separate"), ("hm1_i", "hm1_ii", "hm1_iii", "hm1_iv")),
    "HM2, lasso and ridge": ("hm2", ("lasso", "ridge"), ("hm2_i", "hm2_ii", "hm2_iii")),
}


def printed(experiment: Experiment, algorithm: str, variants: tuple[str, ...]) -> Experiment:
    """The experiment with the variants that the thesis prints, under the first reading of its noise."""
    spec = copy.deepcopy(experiment.spec)
    arm = spec["algorithms"][algorithm]
    arm["variants"] = {name: arm["variants"][name] for name in variants}
    spec["algorithms"] = {algorithm: arm}
    if "readings" in spec["dataset"]:
        spec["dataset"]["readings"] = spec["dataset"]["readings"][:1]
    return dataclasses.replace(experiment, spec=spec)


def prepare(chosen: Experiment, folder: Path) -> None:
    """The data of all runs, and who holds them."""
    from fedrepro.data.preparation import (  # here: a process of its own pays for its imports
        partition_data,
        prepare_data,
    )

    seeds = range(chosen.spec["seeds"])
    prepare_data(chosen.dataset_id, chosen.spec["dataset"], seeds, "standin", (), folder / "data.npz")
    partition_data(
        chosen.federation_id, chosen.spec["partition"], seeds, folder / "data.npz", folder / "federation.npz"
    )


def train(chosen: Experiment, algorithm: str, folder: Path) -> dict:
    """All runs from the files of `prepare` to written metrics: the manifest's numbers."""
    begin = time.perf_counter()
    from fedrepro.workflow.train_job import Inputs, Machine, train_shard

    inputs, out = Inputs(folder / "data.npz", folder / "federation.npz"), folder / "metrics.parquet"
    train_shard(chosen, algorithm, f"0-{chosen.spec['seeds'] - 1}", inputs, Machine(), out, folder)
    manifest = read_json(out.with_suffix(".json"))
    return {
        "experiment": chosen.name,
        "runs": len(manifest["seeds"]),
        "gradient_steps": manifest["gradient_steps"],
        "seconds": time.perf_counter() - begin,
        "peak_mb": round(manifest["peak_memory_mb"]),
    }


def measure(config: Path, scale: str = "paper", cases: Mapping = CASES) -> pd.DataFrame:
    """One row per case, and one for all cases of a table together, from the first process' start to the last's end,
    with the imports, which the jobs share."""
    rows = []
    for what, (algorithm, variants, names) in cases.items():
        experiments = [load_experiment(config, f"fedlin/{name}", scale) for name in names]
        chosen = [printed(experiment, algorithm, variants) for experiment in experiments]
        with tempfile.TemporaryDirectory() as folder:
            folders = [Path(folder) / name for name in names]
            for path in folders:
                path.mkdir()
            two_at_a_time(prepare, chosen, folders)
            begin = time.perf_counter()
            parts = two_at_a_time(train, chosen, [algorithm] * len(names), folders, warm=IMPORTED)
            found = [{"what": what, **row} for row in parts]
            seconds = time.perf_counter() - begin
        whole = {
            "what": what,
            "experiment": "all, two at a time",
            "runs": found[0]["runs"],
            "gradient_steps": sum(row["gradient_steps"] for row in found),
            "seconds": seconds,
            "peak_mb": max(row["peak_mb"] for row in found),
        }
        rows += [*found, whole]
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> int:
    write("linear", measure(Path("config"), *arguments), digits=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
