"""Rule build_report: all results on one page."""

from pathlib import Path

from fedrepro.evidence.assumptions import write_registers
from fedrepro.report.page import build_report
from fedrepro.workflow.jobs import job


def main(results: Path, folders: list[str], scale: str, studies: list[str], out: Path) -> None:
    write_registers(results, [Path(folder) for folder in folders])
    build_report(results, out, scale=scale, studies=studies)


if "snakemake" in globals():
    with job(snakemake, "*.csv", "runs/**/*.json"):
        p = snakemake.params
        page = Path(snakemake.output.page)
        main(page.parents[1], p.folders, p.scale, p.studies, page)
