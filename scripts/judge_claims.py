"""Rule judge_claims: a verdict for every published claim of one study."""

from pathlib import Path

import pandas as pd

from fedrepro.evidence.ledger import judge, load_claims
from fedrepro.evidence.quantities import with_seconds
from fedrepro.files import read_json, write_atomically
from fedrepro.workflow.jobs import logged


def main(study, claims, published, tables, manifests, scale, out):
    runs = [read_json(Path(m)) for m in manifests]
    frames = {}
    for table in map(Path, tables):
        name = f"{study}/{table.stem}"
        frames[name] = with_seconds(pd.read_parquet(table), [run for run in runs if run["experiment"] == name])
    numbers = pd.read_csv(published) if published else None
    write_atomically(Path(out), judge(load_claims(Path(claims)), frames, numbers, scale).to_csv(index=False))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        i = snakemake.input
        published = i.published[0] if len(i.published) else None
        study, scale = snakemake.wildcards.study, snakemake.params.scale
        main(study, i.claims, published, i.tables, i.manifests, scale, snakemake.output.ledger)
