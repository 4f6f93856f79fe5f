"""Rules execute_notebook and execute_overview: run a notebook with papermill and keep it as html too."""

import shutil
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

from fedrepro.files import write_atomically
from fedrepro.jobs import logged


def main(notebook, parameters, executed, page, failed):
    Path(failed).unlink(missing_ok=True)
    try:
        papermill.execute_notebook(notebook, executed, parameters, progress_bar=False, log_output=False)
    except BaseException:
        # the workflow removes the outputs of a failed job: what ran is kept beside the log
        if Path(executed).exists():
            shutil.copy(executed, failed)
        raise
    html, _ = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True).from_notebook_node(
        nbformat.read(executed, as_version=4)
    )
    write_atomically(Path(page), html)


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        out = snakemake.output
        failed = Path(snakemake.log[0]).with_suffix(".failed.ipynb")
        # the absolute path is made here: as a parameter of the rule it would re-run the notebooks of a moved checkout
        results = Path(out.notebook).resolve().parents[1]
        parameters = {"results": str(results), **dict(snakemake.wildcards.items())}
        main(snakemake.input.notebook, parameters, out.notebook, out.page, failed)
