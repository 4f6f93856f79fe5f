"""Rule judge_claims: one verdict per claim of a study, or per claim that rests on one artefact."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrepro.evidence.judging import PARTS, judge_study
from fedrepro.files import write_atomically
from fedrepro.workflow.jobs import job


def main(
    ledger: str, tables: list[str], manifests: list[str], params: Mapping[str, Any], out: Mapping[str, str]
) -> None:
    study, asked = ledger.split("/")[0], params["asked"]
    files = map(Path, tables), map(Path, manifests)
    judged = judge_study(Path(params["config"]), study, *files, params["scale"], Path(params["results"]), asked)
    for name in PARTS:
        write_atomically(Path(out[name]), getattr(judged, name).to_csv(index=False))


if "snakemake" in globals():
    with job(snakemake):
        i = snakemake.input
        main(snakemake.wildcards.ledger, i.tables, i.manifests, dict(snakemake.params.items()), snakemake.output)
