"""Rule execute_notebook: run a notebook with papermill and save it as html too."""

from pathlib import Path

from fedrepro.workflow.jobs import logged
from fedrepro.workflow.run_notebook import execute_notebook


def main(notebook: str, executed: str, page: str, log: str) -> None:
    execute_notebook(Path(notebook), Path(executed), Path(page), Path(log).with_suffix(".failed.ipynb"))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        out = snakemake.output
        main(snakemake.input.notebook[0], out.notebook, out.page, snakemake.log[0])
