"""The whole workflow, as it is committed, at smoke scale."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

from fedrepro.config import ROOT
from fedrepro.experiment import load_artefacts, load_experiments
from fedrepro.ledger import load_claims
from tests.workflow.conftest import PARTS, Checkout, copy_tree

pytestmark = pytest.mark.workflow


def test_every_study_runs_and_every_claim_is_judged(tmp_path):
    for part in PARTS:
        copy = copy_tree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, tmp_path / part)
    checkout = Checkout(tmp_path)
    done = checkout.snakemake("all")
    assert done.returncode == 0, done.stderr

    config = ROOT / "config"
    experiments = load_experiments(config, "smoke")
    for artefact in load_artefacts(config, experiments):
        for suffix in ("csv", "svg", "png", "json"):
            assert (checkout.results / "artefacts" / f"{artefact}.{suffix}").stat().st_size > 0
    files = sorted((config / "claims").glob("*.yaml"))
    claims = [f"{path.stem}/{claim['id']}" for path in files for claim in load_claims(path)["claims"]]
    ledger = pd.read_csv(checkout.results / "ledger.csv")
    assert sorted(ledger["claim"]) == sorted(claims)
    assert not ledger["reason"].str.contains("must say which|has no|no table", regex=True).any()
    page = (checkout.results / "report" / "index.html").read_text()
    assert all(artefact in page for artefact in load_artefacts(config, experiments))
