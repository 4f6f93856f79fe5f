"""One version everywhere; the citation names every paper; the workflow files of the forge name commands that exist."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

import fedrepro
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT, read_yaml

CITATION = read_yaml(ROOT / "CITATION.cff")
STUDIES = load_studies(ROOT / "config")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    assert tomllib.loads(text("pyproject.toml"))["project"]["version"] == fedrepro.__version__
    assert CITATION["version"] == fedrepro.__version__
    newest = re.search(r"(?m)^## (\S+) \((.+)\)$", text("CHANGELOG.md"))
    assert newest.groups() == (fedrepro.__version__, str(CITATION["date-released"]))


def spelt(author: dict[str, str]) -> str:
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


@pytest.mark.parametrize("name", STUDIES)
def test_the_paper_of_a_study_is_among_the_references(name):
    study = STUDIES[name]
    (reference,) = [entry for entry in CITATION["references"] if entry.get("url") == study.link]
    assert reference["title"] == study.title
    assert [spelt(author) for author in reference["authors"]] == list(study.authors)
    venue = f"{reference['notes']} {reference.get('conference', {}).get('name', '')}"
    assert study.venue in venue


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_workflows_of_the_forge_run_what_exists(path):
    targets = re.findall(r"(?m)^([a-z-]+):.*## ", text("Makefile"))
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]  # the key `on` is no text to our own loader
    steps = [step for job in jobs.values() for step in job["steps"] if "run" in step]
    assert steps
    asked = {name for step in steps for name in re.findall(r"\bmake ([a-z-]+)", step["run"])}
    assert asked <= set(targets)
    assert all((ROOT / ".ci" / "run").exists() for step in steps if ".ci/run" in step["run"])


def test_dependencies_that_are_watched_have_files():
    updates = read_yaml(ROOT / ".github" / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"pip", "github-actions", "docker"}
    assert all((ROOT / update["directory"].lstrip("/")).is_dir() for update in updates)
