"""The reference run in results/reference: complete, small, and in agreement with README."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from fedrepro.commands import cli
from fedrepro.core.study import load_studies
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT, read_json, read_yaml
from fedrepro.report import reference
from fedrepro.report.summary import tables

STUDIES = load_studies(ROOT / "config")
LEDGER = pd.read_csv(reference.REFERENCE / "ledger.csv", dtype=str, keep_default_na=False)
KEPT = list(dict.fromkeys(LEDGER["study"]))  # a study is kept once it has been run by today's rules
MOST_BYTES = 30_000_000


def test_it_keeps_studies_that_there_are():
    assert KEPT
    assert set(KEPT) <= set(STUDIES)
    for part in ("artefacts", "ledgers", "readings", "headlines", "numbers", "runs"):
        assert {path.stem for path in (reference.REFERENCE / part).iterdir()} == set(KEPT), part


def test_readme_and_findings_show_its_verdicts():
    headlines = pd.read_csv(reference.REFERENCE / "headlines.csv", dtype=str, keep_default_na=False)
    for path, text in tables(LEDGER, headlines).items():
        assert path.read_text() == text, f"{path}: `fedrepro reference build` writes it"


def test_every_study_has_its_findings_and_its_caveat():
    for name, study in STUDIES.items():
        text = (ROOT / "docs" / "findings" / f"{name}.md").read_text()
        assert text.startswith(f"# {study.title}\n")
        assert study.caveat
        assert f"**Biggest caveat.** {study.caveat}\n" in text
        assert study.link in text


def test_readme_fits_its_size_and_names_files_that_exist():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 150
    assert "replication" in readme
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        links = [link for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()) if "://" not in link]
        missing = [link for link in links if not (path.parent / link).exists()]
        assert not missing, f"{path}: {missing}"


def test_documented_commands_exist():
    known = cli.names()
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "commands.md").read_text()
    named = set(re.findall(r"(?:`|bin/)fedrepro ([a-z-]+)", text))
    assert named <= set(known), named - set(known)
    assert set(known) <= set(re.findall(r"`fedrepro ([a-z-]+)", (ROOT / "docs" / "commands.md").read_text()))


def test_readme_shows_its_bench():
    """One row per case in the order of engine.csv: pfl, Flower and the faster hand-written code, relative to the
    engine."""
    after = (ROOT / "README.md").read_text().partition("## How fast it is")[2]
    shown = [line.split("|")[2:5] for line in after.splitlines() if line.startswith("| ")][1:]
    engine = pd.read_csv(reference.REFERENCE / "bench" / "engine.csv")
    ratios = [own.set_index("system")["ratio"] for _, own in engine.groupby("case", sort=False)]
    for cells, ratio in zip(shown, ratios, strict=True):
        by_hand = ratio.filter(like="bare")
        expected = [f"{ratio[peer]:#.2g}".rstrip(".") + " ×" if peer in ratio else "" for peer in ("pfl", "Flower")]
        expected.append(f"{by_hand.min():.2f} ×" if len(by_hand) else "")
        assert [cell.strip() for cell in cells] == expected


@pytest.mark.parametrize("study", KEPT)
def test_it_judges_every_claim_reading_and_headline(study):
    claims = load_claims(STUDIES[study].folder / "claims.yaml").claims
    kept = {name: pd.read_csv(reference.REFERENCE / name) for name in ("readings.csv", "headlines.csv")}
    own = {name: rows[rows["study"] == study] for name, rows in {**kept, "ledger.csv": LEDGER}.items()}
    assert sorted(own["ledger.csv"]["claim"]) == sorted(f"{study}/{name}" for name in claims)
    readings = {(f"{study}/{name}", reading) for name, claim in claims.items() for reading in claim.readings}
    assert set(zip(own["readings.csv"]["claim"], own["readings.csv"]["reading"], strict=True)) == readings
    assert sorted(own["headlines.csv"]["headline"]) == sorted(STUDIES[study].headlines)


def finished(study: str) -> set[str]:
    """The experiments of a study whose runs are kept: all, unless the ledger says that some were not run."""
    kept = {path.name for path in (reference.REFERENCE / "runs" / study).iterdir()}
    whole = not LEDGER[LEDGER["study"] == study]["reason"].str.contains("was not run").any()
    every = {path.parent.parent.name for path in reference.manifests(reference.REFERENCE, study)}
    assert kept <= every
    assert kept == every or not whole
    return kept


@pytest.mark.parametrize("study", KEPT)
def test_it_has_every_artefact_of_what_was_run(study):
    kept = finished(study)
    for name, about in read_yaml(STUDIES[study].folder / "artefacts.yaml").items():
        if {*about["experiments"], *about.get("data", [])} <= kept:
            assert (reference.REFERENCE / "artefacts" / study / f"{name}.csv").is_file(), name


@pytest.mark.parametrize("study", KEPT)
def test_every_training_job_of_what_was_run_has_its_manifest_and_there_is_no_other(study):
    there = (reference.REFERENCE / "runs" / study).rglob("*.json")
    jobs = reference.manifests(reference.REFERENCE, study)
    own = {path: settings for path, settings in jobs.items() if path.parent.parent.name in finished(study)}
    assert {path: read_json(path)["config_sha256"] for path in there} == own


def test_it_is_small_and_names_no_folder_of_a_machine():
    assert reference.size() <= MOST_BYTES
    for path in reference.REFERENCE.rglob("*"):
        if path.suffix in (".json", ".csv", ".html", ".svg"):
            text = path.read_text()
            assert not [word for word in ("/home/", "/tmp/", "/root/", "/Users/") if word in text], path
