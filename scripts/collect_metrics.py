"""Rule collect_metrics: one tidy table per experiment."""

from pathlib import Path

from fedrepro.core import parts
from fedrepro.evidence.tables import collect_metrics
from fedrepro.workflow.jobs import job


def main(study: str, shards: list[str], divergence: dict[str, float], out: str) -> None:
    collect_metrics([Path(shard) for shard in shards], Path(out), parts.measure(study), divergence)


if "snakemake" in globals():
    with job(snakemake):
        shards, divergence = snakemake.input.metrics, snakemake.params.divergence
        main(snakemake.wildcards.study, shards, divergence, snakemake.output.table)
