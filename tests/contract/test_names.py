"""The name of a study appears in the folders of that study only, and every part has one name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from fedrepro.core import parts
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT

STUDIES = load_studies(ROOT / "config")
KINDS = tuple(parts.SHARED)


def homes(study: str) -> tuple[str, ...]:
    """The folders and files of a study."""
    folders = ("config/studies", "src/fedrepro/studies", "tests/studies")
    return (*(f"{folder}/{study}/" for folder in folders), f"notebooks/{study}.ipynb", f"docs/findings/{study}.md")


def sources() -> list[str]:
    """Every text file of the checkout except README, the changelog, committed results, and the page that lists methods,
    some of which have their study's name."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    files = listed.stdout.split() or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*.py")]
    spared = ("results/", "README.md", "CHANGELOG.md", "docs/gpu.md")
    return [f for f in files if not f.startswith(spared) and (ROOT / f).suffix not in (".png", ".lock")]


@pytest.mark.parametrize("study", STUDIES)
def test_the_name_of_a_study_stands_in_its_own_folders_only(study: str):
    word = re.compile(rf"(?<![\w.-]){study}(?![\w-])")
    found = []
    for file in sources():
        if file.startswith(homes(study)) or not (ROOT / file).is_file():
            continue
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        found += [f"{file}:{number}: {line.strip()[:80]}" for number, line in enumerate(lines, 1) if word.search(line)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_is_found_by_its_file(kind: str):
    load = {"algorithms": parts.algorithm, "models": parts.model}.get(kind) or getattr(parts, kind[:-1])
    names = parts.modules(kind)
    assert names, "there are none"
    assert all(load(name) is not None for name in names)


def test_a_study_uses_shared_parts_and_its_own():
    for study in STUDIES:
        usable = {
            module
            for kind in KINDS
            for name, module in parts.modules(kind).items()
            if name in parts.usable_by(study, kind)
        }
        strange = [m for m in usable if m.startswith("fedrepro.studies.") and f".{study}." not in m]
        assert not strange


def test_there_are_at_most_three_flat_modules():
    flat = {path.stem for path in (ROOT / "src" / "fedrepro").glob("*.py")}
    assert flat <= {"__init__", "errors", "files"}


def test_every_study_has_a_folder_for_its_config_its_notebook_and_its_tests():
    for study in STUDIES:
        assert (ROOT / "notebooks" / f"{study}.ipynb").is_file()
        assert list((ROOT / "tests" / "studies" / study).glob("test_*.py"))
        assert Path(STUDIES[study].folder / "experiments").is_dir()
