"""Rule build_report: the pages of all results."""

from pathlib import Path

from fedrepro.report.page import write_report
from fedrepro.workflow.jobs import job


def main(results: Path, folders: list[str], scale: str) -> None:
    write_report(results, [Path(folder) for folder in folders], scale=scale)


if "snakemake" in globals():
    with job(snakemake, "*.csv", "runs/**/*.json"):
        p = snakemake.params
        main(Path(snakemake.output.index).parents[1], p.folders, p.scale)
