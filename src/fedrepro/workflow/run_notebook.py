"""Notebooks, executed by papermill and kept as html too."""

import os
import shutil
from pathlib import Path

import nbformat
import papermill
from nbconvert import HTMLExporter

from fedrepro.files import write_atomically


def execute_notebook(notebook: Path, executed: Path, page: Path, failed: Path) -> None:
    """Run a notebook on the results folder in which `executed` lies (results/<scale>/notebooks/…)."""
    failed.unlink(missing_ok=True)
    folder = notebook.resolve().parent
    parameters = {"results": os.path.relpath(executed.resolve().parents[1], folder)}  # no path of this machine
    try:
        papermill.execute_notebook(
            notebook,
            executed,
            parameters,
            progress_bar=False,
            log_output=False,
            request_save_on_cell_execute=False,  # written at the end, or where a cell fails
            cwd=str(folder),
        )
    except BaseException:
        # the workflow removes the outputs of a failed job: what ran is kept beside the log
        if executed.exists():
            shutil.copy(executed, failed)
        raise
    html, _ = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True).from_notebook_node(
        nbformat.read(executed, as_version=4)
    )
    write_atomically(page, html)
