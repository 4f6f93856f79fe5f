"""Judge a study from files: claims and printed numbers of its folder, tidy tables and manifests of a run."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from fedrepro.core.checksums import check
from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import study_of
from fedrepro.errors import UserError
from fedrepro.evidence.arms import COLUMNS
from fedrepro.evidence.claim_files import load_claims
from fedrepro.evidence.explanations import completed, load_all
from fedrepro.evidence.ledger import Judged, judge
from fedrepro.files import read_json

#: tables of `Judged`, each a folder of a results folder
PARTS = {"ledger": "ledgers", "readings": "readings", "headlines": "headlines", "numbers": "numbers"}


def judge_study(
    config: Path,
    study: str,
    tables: Iterable[Path],
    manifests: Iterable[Path],
    scale: str,
    results: Path,
    asked: Collection[str] | None = None,
) -> Judged:
    """The verdicts on the claims of a study, or on those `asked` for. Claims whose table is not among `tables` are not
    tested. results: where explanations are."""
    declared = study_of(config, study)
    claims = declared.file("claims.yaml")
    if claims is None:
        raise UserError(f"{declared.folder}: there are no claims to judge")
    published = declared.file("published.csv")
    known = [read_json(path) for path in manifests]
    judged = judge(
        load_claims(claims),
        {path.stem: pd.read_parquet(check(path), columns=COLUMNS) for path in tables},
        pd.read_csv(published) if published else None,
        scale,
        manifests=known,
        paper=load_experiments(config, "paper", study),
        study=declared,
        asked=asked,
    )
    return replace(judged, ledger=completed(judged.ledger, load_all(results), known))
