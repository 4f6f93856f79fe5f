"""`make bench`, linear models: the cases of thesis ch. 3 at their published size, all 30 runs, two cases at a time.

Each case has a process of its own, timed from its data to its written metrics, into results/bench/linear.csv: HM1 and
Separate in all readings (Table 3.1), HM2 with the lasso and the ridge prior (Table 3.2).
"""

import copy
import dataclasses
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.bench.common import two_at_a_time, write
from fedrepro.core.experiment import Experiment, load_experiments
from fedrepro.files import ROOT, read_json

IMPORTED = ("fedrepro.workflow.train_job", "torch._dynamo")  # once, for all cases
Cases = Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]
#: name → (algorithm, its variants, experiments)
CASES: Cases = {
    "HM1 and Separate, all readings": ("hm1", (), ("hm1_iii", "hm1_iv", "hm1_ii", "hm1_i")),
    "HM2, lasso and ridge": ("hm2", ("lasso", "ridge"), ("hm2_i", "hm2_ii", "hm2_iii")),
}


def printed(experiment: Experiment, algorithm: str, variants: tuple[str, ...]) -> Experiment:
    """The experiment with one algorithm and, if it has variants, those that the thesis prints."""
    spec = copy.deepcopy(experiment.spec)
    arm = spec["algorithms"][algorithm]
    if variants:
        arm["variants"] = {name: arm["variants"][name] for name in variants}
    spec["algorithms"] = {algorithm: arm}
    return dataclasses.replace(experiment, spec=spec)


def prepare(chosen: Experiment, folder: Path) -> None:
    """Write the data of all runs and their partition."""
    from fedrepro.data.preparation import partition_data, prepare_data  # here: only this process needs it

    folder.mkdir()
    seeds, data = range(chosen.spec["seeds"]), folder / "data.npz"
    prepare_data(chosen.dataset_id, chosen.spec["dataset"], seeds, "standin", (), data)
    partition_data(chosen.federation_id, chosen.spec["partition"], seeds, data, folder / "federation.npz")


def train(chosen: Experiment, algorithm: str, folder: Path) -> dict[str, Any]:
    """All runs, from the files of `prepare` to written metrics: the manifest's numbers."""
    begin = time.perf_counter()
    from fedrepro.workflow.train_job import Inputs, Machine, train_shard

    inputs, out = Inputs(folder / "data.npz", folder / "federation.npz"), folder / "metrics.parquet"
    shard, files = f"0-{chosen.spec['seeds'] - 1}", {"code_sha256": "code"}
    train_shard(chosen, algorithm, shard, inputs, Machine(), files, out, folder)
    manifest = read_json(out.with_suffix(".json"))
    return {
        "experiment": chosen.name,
        "runs": len(manifest["seeds"]),
        "gradient_steps": manifest["gradient_steps"],
        "seconds": time.perf_counter() - begin,
        "peak_mb": round(manifest["peak_memory_mb"]),
    }


def measure(scale: str, cases: Cases = CASES) -> pd.DataFrame:
    """One row per case, and one for all cases of a table from the first start to the last end, with shared imports."""
    rows: list[dict[str, Any]] = []
    experiments = load_experiments(ROOT / "config", scale, "fedlin")
    for what, (algorithm, variants, names) in cases.items():
        chosen = [printed(experiments[f"fedlin/{name}"], algorithm, variants) for name in names]
        with tempfile.TemporaryDirectory() as folder:
            folders = [Path(folder) / name for name in names]
            two_at_a_time(prepare, chosen, folders)
            begin = time.perf_counter()
            trained = two_at_a_time(train, chosen, [algorithm] * len(names), folders, warm=IMPORTED)
            seconds = time.perf_counter() - begin
        steps, memory = (sum(row["gradient_steps"] for row in trained), max(row["peak_mb"] for row in trained))
        whole = {"experiment": "all, two at a time", "gradient_steps": steps, "seconds": seconds, "peak_mb": memory}
        rows += [{"what": what, **row} for row in (*trained, trained[0] | whole)]
    return pd.DataFrame(rows)


def main(arguments: list[str]) -> int:
    """arguments: a scale, or none for the paper's."""
    write("linear", measure(arguments[0] if arguments else "paper"), digits=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
