"""Rule train_algorithm: one algorithm on one experiment for one shard of the seeds."""

from pathlib import Path
from typing import Any

from fedrepro.core.devices import pick_device
from fedrepro.core.experiment import load_experiment
from fedrepro.evidence.provenance import about
from fedrepro.workflow.jobs import job
from fedrepro.workflow.train_job import Inputs, Machine, train_shard


def main(
    config: str,
    scale: str,
    experiment: str,
    algorithm: str,
    shard: str,
    dataset: str,
    federation: str,
    machine: dict[str, Any],
    code: str,
    out: str,
    checkpoints: str,
) -> None:
    chosen = load_experiment(Path(config), experiment, scale)
    inputs = Inputs(Path(dataset), Path(federation))
    machine["device"] = str(pick_device(machine["device"], print))
    train_shard(chosen, algorithm, shard, inputs, Machine(**machine), about(code), Path(out), Path(checkpoints))


if "snakemake" in globals():
    with job(snakemake):
        w, p = snakemake.wildcards, snakemake.params
        main(
            p.config,
            p.scale,
            f"{w.study}/{w.experiment}",
            w.algorithm,
            w.shard,
            snakemake.input.dataset,
            snakemake.input.federation,
            {"device": p.device, "strategy": p.strategy, "threads": snakemake.threads},
            p.code,
            snakemake.output.metrics,
            p.checkpoints,
        )
