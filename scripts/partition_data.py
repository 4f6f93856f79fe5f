"""Rule partition_data: the rows of each client as a file, and a picture of the first seed's federation."""

from pathlib import Path
from typing import Any

from fedrepro.data.preparation import partition_data
from fedrepro.files import write_atomically
from fedrepro.report import plotting
from fedrepro.workflow.jobs import logged

snakemake: Any  # set by the workflow

if "snakemake" in globals():
    with logged(snakemake.log[0]):
        w, p, out = snakemake.wildcards, snakemake.params, snakemake.output
        name, dataset, federation = f"{w.dataset}/{w.partition}", Path(snakemake.input.data), Path(out.federation)
        assignments, data = partition_data(name, p.spec, p.seeds, dataset, federation)
        first = assignments[p.seeds[0]]
        drawn = plotting.federation_figure(first.rows["train"], data.train.y, first.groups)
        write_atomically(Path(out.picture), plotting.save(drawn, "svg"))
