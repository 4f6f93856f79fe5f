"""Rule partition_data: the rows of each client in one file, and a figure of the first seed's federation."""

from pathlib import Path
from typing import Any

from fedrepro.data.preparation import partition_data
from fedrepro.files import write_atomically
from fedrepro.report import plotting
from fedrepro.workflow.jobs import job


def main(name: str, spec: dict[str, Any], seeds: list[int], dataset: str, out: str, picture: str) -> None:
    assignments, data = partition_data(name, spec, seeds, Path(dataset), Path(out))
    first = assignments[seeds[0]]
    drawn = plotting.federation_figure(first.rows["train"], data.train.y, first.groups)
    write_atomically(Path(picture), plotting.save(drawn, "svg"))


if "snakemake" in globals():
    with job(snakemake):
        w, p, out = snakemake.wildcards, snakemake.params, snakemake.output
        name = f"{w.dataset}/{w.partition}"
        main(name, p.spec, p.seeds, snakemake.input.data, out.federation, out.picture)
