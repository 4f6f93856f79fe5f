"""Rule judge_claims: one verdict per claim of a study, or per claim that rests on one artefact."""

from pathlib import Path

from fedrepro.evidence.judging import PARTS, judge_study
from fedrepro.files import write_atomically
from fedrepro.workflow.jobs import job

if "snakemake" in globals():
    with job(snakemake):
        i, p = snakemake.input, snakemake.params
        study = snakemake.wildcards.ledger.split("/")[0]
        tables, manifests = map(Path, i.tables), map(Path, i.manifests)
        judged = judge_study(Path(p.config), study, tables, manifests, p.scale, Path(p.results), p.asked)
        for name in PARTS:
            write_atomically(Path(snakemake.output[name]), getattr(judged, name).to_csv(index=False))
