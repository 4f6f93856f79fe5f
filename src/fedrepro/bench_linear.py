"""`make bench`, linear models: the cases of thesis ch. 3 at their published size, all 30 runs, two cases at
a time, each in a process of its own from its start to its written metrics. Into results/bench/linear.csv.

What is timed is what a table prints: HM1 and Separate under one reading of the noise for Table 3.1, HM2 with the lasso
and the ridge prior for Table 3.2. The studies themselves run more variants beside these.
"""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from fedrepro import provenance
from fedrepro.experiment import Experiment, load_experiments, seeds_of
from fedrepro.files import read_json, write_atomically, write_json

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


def run(config: Path, scale: str, name: str, algorithm: str, variants: tuple[str, ...]) -> dict:
    """One experiment from nothing: its data, its training, its manifest's numbers."""
    begin = time.perf_counter()
    from fedrepro.preparation import partition_data, prepare_data  # here: a process of its own pays for its imports
    from fedrepro.training import Inputs, Machine, train_shard

    chosen = printed(load_experiments(config, scale)[f"fedlin/{name}"], algorithm, variants)
    shard = f"0-{chosen.spec['seeds'] - 1}"
    with tempfile.TemporaryDirectory() as folder:
        data, federation, out = (Path(folder) / part for part in ("data.npz", "federation.npz", "metrics.parquet"))
        prepare_data(chosen.dataset_id, chosen.spec["dataset"], seeds_of(shard), "standin", (), data)
        partition_data(chosen.federation_id, chosen.spec["partition"], seeds_of(shard), data, federation)
        train_shard(chosen, algorithm, shard, Inputs(data, federation), Machine(), out, Path(folder))
        manifest = read_json(out.with_suffix(".json"))
    return {
        "experiment": name,
        "runs": len(manifest["seeds"]),
        "gradient_steps": manifest["gradient_steps"],
        "seconds": time.perf_counter() - begin,
        "peak_mb": round(manifest["peak_memory_mb"]),
    }


def measure(config: Path, scale: str = "paper") -> pd.DataFrame:
    """A row a case, and one for all cases of a table together."""
    spawn = multiprocessing.get_context("spawn")
    rows = []
    for what, (algorithm, variants, names) in CASES.items():
        begin = time.perf_counter()
        with ProcessPoolExecutor(2, mp_context=spawn, max_tasks_per_child=1) as pool:
            parts = [pool.submit(run, config, scale, name, algorithm, variants) for name in names]
            found = [{"what": what, **part.result()} for part in parts]
        whole = {
            "what": what,
            "experiment": "all, two at a time",
            "runs": found[0]["runs"],
            "gradient_steps": sum(row["gradient_steps"] for row in found),
            "seconds": time.perf_counter() - begin,
            "peak_mb": max(row["peak_mb"] for row in found),
        }
        rows += [*found, whole]
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> int:
    table = measure(Path("config"), *arguments)
    out = Path("results/bench/linear.csv")
    write_atomically(out, table.to_csv(index=False))
    write_json(out.with_suffix(".json"), {"machine": provenance.machine(), "versions": provenance.versions()})
    sys.stdout.write(table.to_string(index=False, float_format="{:.1f}".format) + f"\ninto {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
