"""Rule collect_metrics: one tidy table per experiment."""

from pathlib import Path

from fedrepro.evidence.tables import collect_metrics
from fedrepro.workflow.jobs import logged


def main(study, shards, out):
    collect_metrics(study, [Path(s) for s in shards], Path(out))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        main(snakemake.wildcards.study, snakemake.input.metrics, snakemake.output.table)
