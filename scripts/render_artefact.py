"""Rule render_artefact: a figure or table, its numbers and its provenance."""

from pathlib import Path
from typing import Any

from fedrepro.report.rendering import render_artefact
from fedrepro.workflow.jobs import job


def main(
    spec: dict[str, Any],
    scale: str,
    tables: list[str],
    manifests: list[str],
    samples: list[str],
    published: list[str],
    code: dict[str, str],
    out: str,
) -> None:
    inputs = ([Path(p) for p in group] for group in (tables, manifests, samples))
    render_artefact(spec, scale, *inputs, Path(published[0]) if published else None, code, Path(out))


if "snakemake" in globals():
    with job(snakemake):
        i, p = snakemake.input, snakemake.params
        main(p.spec, p.scale, i.tables, i.manifests, i.samples, i.published, p.code, snakemake.output.csv)
