"""The whole committed workflow at smoke scale."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.core.experiment import load_artefacts, load_experiments, select
from fedrepro.core.study import load_studies
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT
from tests.workflow.conftest import SMOKE_STUDIES

pytestmark = pytest.mark.workflow


def test_every_study_runs_and_every_claim_is_judged(smoke_run):
    checkout, outcome = smoke_run
    assert outcome["returncode"] == 0, outcome["err"]

    config = ROOT / "config"
    experiments = load_experiments(config, "smoke")
    artefacts = select(SMOKE_STUDIES, load_artefacts(config, experiments))
    for artefact in artefacts:
        for suffix in ("csv", "svg", "png", "json"):
            assert (checkout.results / "artefacts" / f"{artefact}.{suffix}").stat().st_size > 0
    studies = {name: s.folder for name, s in load_studies(config).items() if not SMOKE_STUDIES or name in SMOKE_STUDIES}
    claims = [f"{s}/{id}" for s, folder in studies.items() for id in load_claims(folder / "claims.yaml").claims]
    ledger = pd.read_csv(checkout.results / "ledger.csv")
    assert sorted(ledger["claim"]) == sorted(claims)
    assert not ledger["reason"].str.contains("must say which|has no value|no table", regex=True).any()
    page = (checkout.results / "report" / "figures.html").read_text()
    assert all(artefact in page for artefact in artefacts)
