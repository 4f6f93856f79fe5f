"""Rule partition_data: who holds what, as a file and as a picture of the first seed."""

from pathlib import Path

from fedrepro.data.preparation import partition_data
from fedrepro.files import write_atomically
from fedrepro.report import plotting
from fedrepro.workflow.jobs import logged


def main(federation_id, spec, seeds, dataset, out, picture):
    assignments, data = partition_data(federation_id, spec, seeds, Path(dataset), Path(out))
    first = assignments[seeds[0]]
    drawn = plotting.federation_figure(first.rows["train"], data.train.y, first.groups)
    write_atomically(Path(picture), plotting.save(drawn, "svg"))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        w, out = snakemake.wildcards, snakemake.output
        federation = f"{w.dataset}/{w.partition}"
        main(
            federation,
            snakemake.params.spec,
            snakemake.params.seeds,
            snakemake.input.data,
            out.federation,
            out.picture,
        )
