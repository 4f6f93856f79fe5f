"""Rule prepare_data: one data set, verified or drawn, as one file."""

from pathlib import Path

from fedrepro.core.config import data_folders
from fedrepro.data.fetch import fetch_missing
from fedrepro.data.preparation import prepare_data
from fedrepro.workflow.jobs import logged


def main(dataset_id, spec, seeds, mode, data_dir, out):
    prepare_data(dataset_id, spec, seeds, mode, data_folders(data_dir), Path(out), fetch_missing)


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        p = snakemake.params
        main(snakemake.wildcards.dataset, p.spec, p.seeds, p.mode, p.data_dir, snakemake.output.data)
