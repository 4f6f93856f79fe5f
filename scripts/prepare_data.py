"""Rule prepare_data: one data set, verified or generated, in one file."""

from pathlib import Path
from typing import Any

from fedrepro.data.catalogue import data_folders
from fedrepro.data.fetch import fetch_missing
from fedrepro.data.preparation import prepare_data
from fedrepro.workflow.jobs import job


def main(name: str, spec: dict[str, Any], seeds: list[int], mode: str, data_dir: str | None, out: str) -> None:
    prepare_data(name, spec, seeds, mode, data_folders(data_dir), Path(out), fetch_missing)


if "snakemake" in globals():
    with job(snakemake):
        p = snakemake.params
        main(snakemake.wildcards.dataset, p.spec, p.seeds, p.mode, p.data_dir, snakemake.output.data)
