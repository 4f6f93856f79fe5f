"""`fedrepro publish`: the published folder of the committed reference, and what is refused."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

import jsonschema
import pytest

from fedrepro.commands import cli
from fedrepro.core import checksums
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT, read_json, read_yaml, sha256
from fedrepro.report.claim_runs import runs_behind
from fedrepro.report.publication import folder, zenodo
from fedrepro.report.reference import REFERENCE
from tests.unit.report.rocrate_offline import validate


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


LEDGER, HEADLINES = rows(REFERENCE / "ledger.csv"), rows(REFERENCE / "headlines.csv")
STUDIES = list(dict.fromkeys(row["study"] for row in LEDGER))
SMALL = min(STUDIES, key=lambda study: len(list(REFERENCE.glob(f"runs/{study}/**/*.json"))))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The reference, published."""
    target = tmp_path_factory.mktemp("whole") / "published"
    folder.publish(REFERENCE, target)
    return target


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """One of its studies, published by the command."""
    target = tmp_path_factory.mktemp("small") / "published"
    assert cli.main(["publish", str(REFERENCE), SMALL, "--to", str(target)]) == 0
    return target


def graph(published: Path) -> dict[str, dict]:
    entities = read_json(published / "ro-crate-metadata.json")["@graph"]
    found = {entity["@id"]: entity for entity in entities}
    assert len(found) == len(entities)
    return found


def ids(value: object) -> list[str]:
    """The entities that a property refers to."""
    return [item["@id"] for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def of_type(entities: dict[str, dict], kind: str) -> list[dict]:
    return [e for e in entities.values() if kind in (e["@type"] if isinstance(e["@type"], list) else [e["@type"]])]


# --- the crate -------------------------------------------------------------------------------------------------------


def test_the_crate_is_a_valid_workflow_run_crate(small, tmp_path):
    assert validate(small, tmp_path) == []


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (lambda entities: entities["./"].pop("mainEntity"), "mainEntity"),
        (lambda entities: entities["#run"].pop("instrument"), "instrument"),
        (lambda entities: entities["#run"].update(notATerm="x"), "notATerm"),
    ],
)
def test_the_validator_finds_what_is_wrong(small, tmp_path, broken, told):
    """Otherwise its silence says nothing."""
    copied = shutil.copytree(small, tmp_path / "copy")
    content = read_json(copied / "ro-crate-metadata.json")
    broken({entity["@id"]: entity for entity in content["@graph"]})
    (copied / "ro-crate-metadata.json").write_text(json.dumps(content))
    assert any(told in line for line in validate(copied, tmp_path))


@pytest.mark.parametrize("which", ["whole", "small"])
def test_every_path_exists_and_every_reference_is_described(which, request):
    published = request.getfixturevalue(which)
    entities = graph(published)
    for entity in (*of_type(entities, "File"), *of_type(entities, "Dataset")):
        path = published / unquote(entity["@id"])
        assert path.is_dir() if entity["@type"] == "Dataset" else path.is_file()
        if "sha256" in entity:
            assert (entity["sha256"], entity["contentSize"]) == (sha256(path), str(path.stat().st_size))
    assert sum("sha256" in entity for entity in of_type(entities, "File")) == len(of_type(entities, "File"))
    named = {id for entity in entities.values() for value in entity.values() for id in ids(value)}
    assert {id for id in named - set(entities) if "://" not in id} == set()


def test_all_files_but_the_code_are_described(whole):
    there = {path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()}
    own = {place for place in there if not place.startswith("code/")}
    assert own - {unquote(id) for id in graph(whole)} == {checksums.LISTING}


def test_each_verdict_is_an_assertion_with_its_provenance(whole):
    entities = graph(whole)
    reviews: dict[str, list[dict]] = {}
    for entity in of_type(entities, "ClaimReview"):
        reviews.setdefault(entity["identifier"], []).append(entity)
    headlines = {f"{row['study']}/headline/{row['headline']}" for row in HEADLINES}
    assert set(reviews) == {row["claim"] for row in LEDGER} | headlines
    assert {len(found) for found in reviews.values()} == {1}
    assert set(ids(entities["./"]["mentions"])) == {"#run", *(found[0]["@id"] for found in reviews.values())}
    studies = load_studies(ROOT / "config")
    claims = {name: load_claims(studies[name].folder / "claims.yaml", checked=False).claims for name in STUDIES}
    tested = 0
    for row in LEDGER:
        (review,) = reviews[row["claim"]]
        claim, rating = entities[review["itemReviewed"]["@id"]], entities[review["reviewRating"]["@id"]]
        assert (rating["name"], claim["text"]) == (row["verdict"], row["paper_says"] or row["statement"])
        assert row["reason"] in review["reviewBody"]
        paper = claim.get("appearance")
        assert (paper is None) is (row["origin"] == "added")
        assert paper is None or entities[paper["@id"]]["url"] == studies[row["study"]].link
        runs = runs_behind(REFERENCE, row["study"], claims[row["study"]][row["claim"].partition("/")[2]])
        expected = {f"results/{path.relative_to(REFERENCE).as_posix()}" for path in runs}
        behind = set(ids(review["isBasedOn"]))
        assert {id for id in behind if id.startswith("results/runs/")} == expected
        settings = f"code/config/studies/{row['study']}"
        assert {"results/ledger.csv", f"{settings}/claims.yaml", f"results/numbers/{row['study']}.csv"} <= behind
        assert expected or row["evidence"] in ("", "printed numbers"), "what was run has its runs"
        tested += bool(expected)
    assert tested > 100
    for row in HEADLINES:
        (review,) = reviews[f"{row['study']}/headline/{row['headline']}"]
        assert entities[review["reviewRating"]["@id"]]["name"] == row["verdict"]
        assert review["claimReviewed"] == row["quote"]
        rests = {f"#verdict/{row['study']}/{claim}" for claim in row["claims"].split()}
        assert {"results/headlines.csv", *rests} <= set(ids(review["isBasedOn"]))


def test_the_run_leads_from_data_config_and_lock_to_the_results(whole):
    entities = graph(whole)
    run, workflow = entities["#run"], entities["code/Snakefile"]
    assert (run["instrument"]["@id"], entities["./"]["mainEntity"]["@id"]) == ("code/Snakefile", "code/Snakefile")
    assert entities[workflow["programmingLanguage"]["@id"]]["name"] == "Snakemake"
    manifests = [read_json(path) for path in REFERENCE.glob("runs/**/*.json")]
    data = {f"#data/{manifest['data']['sha256']}" for manifest in manifests}
    scales = {f"#scale/{manifest['scale']}" for manifest in manifests}
    assert set(ids(run["object"])) == data | scales | {"code/config/", "code/envs/requirements.lock"}
    real = [manifest["data"] for manifest in manifests if manifest["data"].get("found")]
    assert real
    for about in real:
        entity = entities[f"#data/{about['sha256']}"]
        assert entity["isBasedOn"]["@id"] == f"croissant/{about['found']['name']}.json"
        assert all(checksum in str(entity["identifier"]) for checksum in about["found"]["files"].values())
    made = set(ids(run["result"]))
    assert {"results/ledger.csv", "results/headlines.csv", "results/readings.csv", "results/report/index.html"} <= made
    assert {f"results/{p.relative_to(REFERENCE).as_posix()}" for p in REFERENCE.glob("runs/**/*.json")} <= made
    assert run["actionStatus"]["@id"].endswith("/CompletedActionStatus")
    assert "endTime" not in run  # the reference was copied: the times of its files are not those of the run
    used = {(name, v) for m in manifests for name, v in m["versions"].items() if name != "fedrepro"}
    assert {(e["name"], e["version"]) for e in of_type(entities, "SoftwareApplication")} == used


# --- the folder ------------------------------------------------------------------------------------------------------


def test_results_and_code_are_copied_byte_by_byte(whole):
    for path in (path for path in REFERENCE.rglob("*") if path.is_file() and path.name != checksums.LISTING):
        assert (whole / "results" / path.relative_to(REFERENCE)).read_bytes() == path.read_bytes()
    for name in ("Snakefile", "envs/requirements.lock", "config/datasets.yaml", "src/fedrepro/files.py"):
        assert (whole / "code" / name).read_bytes() == (ROOT / name).read_bytes()
    assert not list(whole.rglob("__pycache__"))


def test_its_checksums_hold_and_find_a_change(small, tmp_path):
    assert list(checksums.wrong(small)) == []
    copied = shutil.copytree(small, tmp_path / "copy")
    for name in (".zenodo.json", "ro-crate-metadata.json", "code/Snakefile"):
        flip(copied / name)
    assert {path.name for path, _ in checksums.wrong(copied)} == {".zenodo.json", "ro-crate-metadata.json", "Snakefile"}


@pytest.mark.parametrize("which", ["whole", "small"])
def test_the_report_opens_from_the_folder(which, request):
    published = request.getfixturevalue(which)
    pages = sorted(published.glob("results/report/*.html"))
    assert "index.html" in [page.name for page in pages]
    for page in pages:
        links = re.findall(r'(?:href|src)="([^"#?]+)', page.read_text())
        missing = [link for link in links if ":" not in link and not (page.parent / unquote(link)).exists()]
        assert missing == []


def test_of_some_studies_only_theirs_is_published(small):
    published = small / "results"
    for name in folder.TABLES:
        assert rows(published / name) == [row for row in rows(REFERENCE / name) if row["study"] == SMALL]
    assert {path.name for path in (published / "runs").iterdir()} == {SMALL}
    assert [study["study"] for study in read_json(published / "studies.json")] == [SMALL]
    titles = {name: study.title for name, study in load_studies(ROOT / "config").items()}
    page = (published / "report" / "index.html").read_text()
    assert titles[SMALL] in page
    assert not any(titles[other] in page for other in STUDIES if other != SMALL)


def test_a_run_has_an_end_and_failed_jobs_are_told(tmp_path):
    """A results/<scale> folder, with seals instead of a listing."""
    results = tmp_path / "results" / "smoke"
    for pattern in (*folder.TABLES, *(pattern.format(SMALL) for pattern in folder.OF_A_STUDY)):
        for path in REFERENCE.glob(pattern):
            (results / path.relative_to(REFERENCE)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, results / path.relative_to(REFERENCE))
    checksums.seal(path for path in results.rglob("*") if path.is_file())
    (results / "failures.json").write_text('[{"rule": "train"}]')
    folder.publish(results, tmp_path / "published", [SMALL])
    run = graph(tmp_path / "published")["#run"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", run["endTime"])
    assert run["actionStatus"]["@id"].endswith("/FailedActionStatus")
    assert "1 jobs" in run["error"]
    assert not list((tmp_path / "published").rglob("*.sha256"))


ZENODO = {  # what Zenodo's documentation of its deposit metadata asks for, as far as it is used here
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "description", "upload_type", "access_right", "license", "creators"],
    "properties": {
        "title": {"type": "string", "minLength": 3},
        "description": {"type": "string", "minLength": 3},
        "upload_type": {"enum": ["publication", "dataset", "software", "other"]},
        "access_right": {"enum": ["open", "embargoed", "restricted", "closed"]},
        "license": {"type": "string"},
        "keywords": {"type": "array", "items": {"type": "string"}},
        "version": {"type": "string"},
        "publication_date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
        "creators": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
        "related_identifiers": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["identifier", "relation"],
                "properties": {
                    "identifier": {"type": "string"},
                    "relation": {"enum": ["cites", "references", "isSupplementTo", "isDerivedFrom"]},
                    "scheme": {"enum": ["arxiv", "doi", "url"]},
                },
            },
        },
    },
}


def test_the_zenodo_metadata_name_authors_licence_and_papers(whole):
    deposit = read_json(whole / ".zenodo.json")
    jsonschema.validate(deposit, ZENODO)
    cited = read_yaml(ROOT / "CITATION.cff")
    assert [creator["name"] for creator in deposit["creators"]] == [author["name"] for author in cited["authors"]]
    assert (deposit["license"], deposit["keywords"]) == (cited["license"], cited["keywords"])
    links = {study.link for name, study in load_studies(ROOT / "config").items() if name in STUDIES}
    assert len(deposit["related_identifiers"]) == len(links)


def test_identifiers_of_papers():
    arxiv = {"identifier": "arXiv:2601.01793", "scheme": "arxiv"}
    assert zenodo.identifier("https://arxiv.org/abs/2601.01793v2") == arxiv
    assert zenodo.identifier("https://doi.org/10.1/ab")["identifier"] == "10.1/ab"
    assert zenodo.identifier("https://a.org/x")["scheme"] == "url"
    assert zenodo.author_name({"family-names": "Doe", "given-names": "Jo"}) == "Doe, Jo"


# --- refusals --------------------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_damaged_byte_is_refused_by_name(tmp_path, capsys):
    copied = shutil.copytree(REFERENCE, tmp_path / "reference")
    manifest = min(copied.glob("runs/**/*.json"))
    flip(manifest)
    target = tmp_path / "out" / "published"
    assert cli.main(["publish", str(copied), "--to", str(target)]) == 1
    assert f"{manifest}: damaged" in capsys.readouterr().err
    assert not target.parent.exists()


def test_a_file_that_nothing_vouches_for_is_refused(tmp_path):
    copied = shutil.copytree(REFERENCE, tmp_path / "reference")
    (copied / "artefacts" / SMALL / "mine.csv").write_text("x\n")
    with pytest.raises(UserError, match=r"mine\.csv: no checksum"):
        folder.publish(copied, tmp_path / "published")


def test_an_existing_folder_is_kept_or_replaced_as_a_whole(small, tmp_path, monkeypatch):
    target = shutil.copytree(small, tmp_path / "published")
    with pytest.raises(UserError, match="exists already"):
        folder.publish(REFERENCE, target, [SMALL])

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(folder, "write_crate", fail)
        with pytest.raises(OSError, match="disk full"):
            folder.publish(REFERENCE, target, [SMALL], replace=True)
    assert list(checksums.wrong(target)) == []
    assert [path.name for path in tmp_path.iterdir()] == ["published"]

    (before,) = {(target / "README.md").stat().st_ino}
    folder.publish(REFERENCE, target, [SMALL], replace=True)
    assert (target / "README.md").stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir()] == ["published"]


@pytest.mark.parametrize("what", ["changed", "added", "hidden", "foreign"])
def test_nothing_of_the_user_is_lost(small, tmp_path, what):
    target = shutil.copytree(small, tmp_path / "published")
    if what == "changed":
        (target / ".zenodo.json").write_text("{}")
    elif what == "foreign":
        (target / "ro-crate-metadata.json").unlink()
    else:
        (target / (".mine" if what == "hidden" else "mine")).write_text("x")
    with pytest.raises(UserError, match="move it away first"):
        folder.publish(REFERENCE, target, [SMALL], replace=True)


def test_targets_in_or_around_the_results_are_refused():
    for target in (REFERENCE, REFERENCE / "published", REFERENCE.parent):
        with pytest.raises(UserError, match="neither in the results nor around them"):
            folder.publish(REFERENCE, target, replace=True)


def test_wrong_names_are_one_line(tmp_path, capsys):
    target = str(tmp_path / "published")
    for arguments, told in (
        ([str(tmp_path / "none")], "there is no such folder"),
        ([str(tmp_path)], "has no ledger.csv"),
        ([str(REFERENCE), f"{SMALL}x"], f"did you mean '{SMALL}'?"),
    ):
        assert cli.main(["publish", *arguments, "--to", target]) == 1
        said = capsys.readouterr().err
        assert told in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("library", ["rocrate.rocrate", "mlcroissant"])
def test_a_missing_library_is_named_with_how_to_install_it(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=rf"needs {library}.*pip install 'fedrepro\[dev\]'"):
        folder.publish(REFERENCE, tmp_path / "published", [SMALL])
    assert list(tmp_path.iterdir()) == []
