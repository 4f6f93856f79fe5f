"""Rule execute_notebook: run a notebook with papermill and save it as html too."""

from pathlib import Path

from fedrepro.workflow.jobs import job
from fedrepro.workflow.run_notebook import execute_notebook


def main(notebook: str, executed: str, page: str, log: str) -> None:
    execute_notebook(Path(notebook), Path(executed), Path(page), Path(log).with_suffix(".failed.ipynb"))


def read_by(notebook: str) -> list[str]:
    """Patterns of results that a notebook reads beside its declared inputs."""
    if notebook == "overview":
        return ["*.csv", "runs/**/*.json"]
    return [f"*/{notebook}.csv", f"tables/{notebook}/*.parquet", f"runs/{notebook}/**/*.json"]


if "snakemake" in globals():
    with job(snakemake, *read_by(snakemake.wildcards.notebook)):
        out = snakemake.output
        main(snakemake.input.notebook[0], out.notebook, out.page, snakemake.log[0])
