"""Rule judge_claims: a verdict for every published claim of one study."""

from pathlib import Path

import pandas as pd

import fedrepro.warm  # noqa: F401  from here on in a process that has the imports already, if there is one
from fedrepro.files import write_atomically
from fedrepro.jobs import logged
from fedrepro.ledger import judge, load_claims


def main(study, claims, published, tables, scale, out):
    frames = {f"{study}/{Path(t).stem}": pd.read_parquet(t) for t in tables}
    numbers = pd.read_csv(published) if published else None
    write_atomically(Path(out), judge(load_claims(Path(claims)), frames, numbers, scale).to_csv(index=False))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        i = snakemake.input
        published = i.published[0] if len(i.published) else None
        study, scale = snakemake.wildcards.study, snakemake.params.scale
        main(study, i.claims, published, i.tables, scale, snakemake.output.ledger)
