"""Rule prepare_data: one data set, verified or drawn, as one file."""

from pathlib import Path

from fedrepro.fetch import fetch_missing
from fedrepro.jobs import logged
from fedrepro.preparation import prepare_data


def main(dataset_id, spec, seeds, mode, folders, out):
    prepare_data(dataset_id, spec, seeds, mode, folders, Path(out), fetch_missing)


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        p = snakemake.params
        main(snakemake.wildcards.dataset, p.spec, p.seeds, p.mode, p.folders, snakemake.output.data)
