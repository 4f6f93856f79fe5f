"""Notebooks, executed by papermill and also saved as html."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbconvert import HTMLExporter

from fedrepro.files import write_atomically

POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'\">"
)


def execute_notebook(notebook: Path, executed: Path, page: Path, failed: Path) -> None:
    """Run a notebook on the results folder in which `executed` lies (results/<scale>/notebooks/…)."""
    failed.unlink(missing_ok=True)
    folder = notebook.resolve().parent
    parameters = {"results": os.path.relpath(executed.resolve().parents[1], folder)}  # no path of this machine
    try:
        quiet = {"progress_bar": False, "log_output": False, "request_save_on_cell_execute": False}  # saved at the end
        papermill.execute_notebook(notebook, executed, parameters, cwd=str(folder), **quiet)
    except BaseException:
        # the workflow removes the outputs of a failed job: the executed part is kept with the log
        if executed.exists():
            shutil.copy(executed, failed)
        raise
    make: Any = HTMLExporter  # neither nbconvert nor nbformat is typed
    read: Any = nbformat.read
    exporter = make(exclude_input_prompt=True, exclude_output_prompt=True)
    write_atomically(page, alone(exporter.from_notebook_node(read(executed, as_version=4))[0]))


def alone(page: str) -> str:
    """The page without anything from elsewhere: no scripts (nbconvert's load libraries for formulas, diagrams and
    widgets, none of which the notebooks have), no comments in styles, and a policy by which a browser loads nothing."""
    page = re.sub(r"(?is)<script\b.*?</script\s*>", "", page)
    page = re.sub(r"(?is)<style\b.*?</style\s*>", lambda style: re.sub(r"(?s)/\*.*?\*/", "", style[0]), page)
    return page.replace("<head>", f"<head>{POLICY}", 1)
