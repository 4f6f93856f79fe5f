"""Rule judge_claims: one verdict per claim of a study, or per claim that rests on one artefact."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import study_of
from fedrepro.evidence.arms import COLUMNS
from fedrepro.evidence.claim_files import load_claims
from fedrepro.evidence.explanations import completed, load_all
from fedrepro.evidence.ledger import Judged, judge
from fedrepro.files import read_json, write_atomically
from fedrepro.workflow.jobs import job


def main(
    config: str,
    claims: str,
    asked: list[str] | None,
    published: str | None,
    tables: list[str],
    manifests: list[str],
    scale: str,
    results: str,
) -> Judged:
    file = load_claims(Path(claims))
    known = [read_json(Path(manifest)) for manifest in manifests]
    judged = judge(
        file,
        {Path(table).stem: pd.read_parquet(table, columns=COLUMNS) for table in tables},
        pd.read_csv(published) if published else None,
        scale,
        manifests=known,
        paper=load_experiments(Path(config), "paper", file.study),
        study=study_of(Path(config), file.study),
        asked=asked,
    )
    return replace(judged, ledger=completed(judged.ledger, load_all(Path(results)), known))


if "snakemake" in globals():
    with job(snakemake):
        i, p = snakemake.input, snakemake.params
        published = i.published[0] if len(i.published) else None
        judged = main(p.config, i.claims[0], p.asked, published, i.tables, i.manifests, p.scale, p.results)
        for name in ("ledger", "readings", "headlines", "numbers"):
            write_atomically(Path(snakemake.output[name]), getattr(judged, name).to_csv(index=False))
