"""Notebooks, executed by papermill and also saved as html."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jinja2 import DictLoader
from nbconvert import HTMLExporter

from fedrepro.files import write_atomically

POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'\">"
)
#: nbconvert's page with folded code, and tables and pictures that fit
TEMPLATE = """{%- extends 'lab/index.html.j2' -%}
{%- block html_head_css -%}{{ super() }}
<style>
body.jp-Notebook { max-width: 70rem; margin: 0 auto; }
.jp-OutputArea-output { overflow-x: auto; }
img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; max-width: 100%; }
.jp-RenderedHTMLCommon table.told { table-layout: auto; font-size: 0.85rem; }
.jp-RenderedHTMLCommon table.told td { vertical-align: top; }
.jp-RenderedHTMLCommon table.told .words { text-align: left; white-space: normal; min-width: 6rem; }
.jp-RenderedHTMLCommon table.told .number { text-align: right; white-space: nowrap; }
details > summary { cursor: pointer; color: #555; }
</style>
{%- endblock -%}
{%- block input_group -%}
{%- if cell.outputs -%}<details class="code"><summary>code</summary>{{ super() }}</details>{%- endif -%}
{%- endblock -%}
"""


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
    read: Any = nbformat.read  # neither nbconvert nor nbformat is typed
    write_atomically(page, as_page(read(executed, as_version=4)))


def as_page(notebook: Any) -> str:
    """The executed notebook as html without any address outside: code folded, titled by its first heading."""
    make: Any = HTMLExporter
    loaders = [DictLoader({"page.html.j2": TEMPLATE})]
    exporter = make(
        template_file="page.html.j2", extra_loaders=loaders, exclude_input_prompt=True, exclude_output_prompt=True
    )
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    heading = re.search(r"(?m)^# (.+)", prose)
    name = heading[1].replace("`", "") if heading else "Analysis"
    return alone(exporter.from_notebook_node(notebook, {"metadata": {"name": name}})[0])


def alone(page: str) -> str:
    """The page without anything from elsewhere: no scripts (nbconvert's load libraries for formulas, diagrams and
    widgets, none of which the notebooks have), no comments in styles, and a policy by which a browser loads nothing."""
    page = re.sub(r"(?is)<script\b.*?</script\s*>", "", page)
    page = re.sub(r"(?is)<style\b.*?</style\s*>", lambda style: re.sub(r"(?s)/\*.*?\*/", "", style[0]), page)
    return page.replace("<head>", f"<head>{POLICY}", 1)
