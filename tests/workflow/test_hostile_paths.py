"""Folder names with spaces, quotes, semicolons and non-ASCII letters are text in the whole workflow, never a
command."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.workflow

RESULTS = "my results; touch broken `touch broken` $(touch broken) 'é' \"数\" x"  # snakemake strips quotes at the ends
DATA = "da ta; touch broken '\"é"


def test_folders_are_taken_as_they_are_and_nothing_is_written_elsewhere(fresh):
    (fresh.folder / DATA).mkdir()
    before = {path for path in fresh.folder.rglob("*") if ".snakemake" not in path.parts}
    config = (f"results={RESULTS}", f"data_dir={DATA}")
    done = fresh.snakemake("toy/fig3b", config=config)
    assert done.returncode == 0, done.stderr
    assert (fresh.folder / RESULTS / "smoke" / "artefacts" / "toy" / "fig3b.svg").exists()
    after = {path for path in fresh.folder.rglob("*") if ".snakemake" not in path.parts}
    new = {path.relative_to(fresh.folder).parts[0] for path in after - before if "__pycache__" not in path.parts}
    assert new == {RESULTS, "cache"}
