"""Rule prepare_data: one data set, verified or drawn, as one file."""

from pathlib import Path
from typing import Any

from fedrepro.data.catalogue import data_folders
from fedrepro.data.fetch import fetch_missing
from fedrepro.data.preparation import prepare_data
from fedrepro.workflow.jobs import logged

snakemake: Any  # set by the workflow

if "snakemake" in globals():
    with logged(snakemake.log[0]):
        name, p, out = snakemake.wildcards.dataset, snakemake.params, Path(snakemake.output.data)
        prepare_data(name, p.spec, p.seeds, p.mode, data_folders(p.data_dir), out, fetch_missing)
