"""Rule judge_claims: one verdict per claim of a study, or per claim that rests on one artefact."""

from pathlib import Path

import pandas as pd

from fedrepro.evidence.claim_files import load_claims
from fedrepro.evidence.ledger import judge
from fedrepro.evidence.quantities import with_seconds
from fedrepro.files import read_json, write_atomically
from fedrepro.workflow.jobs import logged


def main(
    claims: str,
    asked: list[str] | None,
    published: str | None,
    tables: list[str],
    manifests: list[str],
    scale: str,
    out: str,
) -> None:
    file = load_claims(Path(claims))
    if asked is not None:
        file["claims"] = [claim for claim in file["claims"] if claim["id"] in asked]
    runs = [read_json(Path(m)) for m in manifests]
    frames = {}
    for table in map(Path, tables):
        name = f"{file['study']}/{table.stem}"
        frames[name] = with_seconds(pd.read_parquet(table), [run for run in runs if run["experiment"] == name])
    numbers = pd.read_csv(published) if published else None
    write_atomically(Path(out), judge(file, frames, numbers, scale).to_csv(index=False))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        i = snakemake.input
        published = i.published[0] if len(i.published) else None
        p = snakemake.params
        main(i.claims[0], p.asked, published, i.tables, i.manifests, p.scale, snakemake.output.ledger)
