"""Rule collect_metrics: one tidy table per experiment."""

from pathlib import Path

from fedrepro.core import parts
from fedrepro.evidence.tables import collect_metrics
from fedrepro.workflow.jobs import logged


def main(study: str, shards: list[str], out: str) -> None:
    collect_metrics([Path(shard) for shard in shards], Path(out), parts.measure(study))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        main(snakemake.wildcards.study, snakemake.input.metrics, snakemake.output.table)
