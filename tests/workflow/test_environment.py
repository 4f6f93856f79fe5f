"""Odd environments: a Python without UTF-8, a home folder that is missing or may not be written, a read-only checkout.
Either the run works, or one line says why it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fedrepro.data.catalogue import cache_folder
from fedrepro.errors import UserError
from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.workflow
ASCII = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def test_a_python_without_utf_8_runs_the_workflow(fresh):
    done = fresh.snakemake("toy/fig3b", **ASCII)
    assert done.returncode == 0, done.stderr
    assert (fresh.results / "artefacts" / "toy" / "fig3b.svg").exists()


@pytest.mark.parametrize("command", [["list"], ["bill"], ["show", "--help"]])
def test_a_python_without_utf_8_runs_the_commands(command):
    done = subprocess.run(
        [sys.executable, "-m", "fedrepro.commands.cli", *command],
        env={**os.environ, **ASCII},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch):
    def no_home() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    with pytest.raises(UserError, match=r"the user has no home folder.*: set XDG_CACHE_HOME"):
        cache_folder()


@pytest.fixture
def bound() -> tuple[str, ...]:
    """What starts a command that is bound by the permissions of files; root is so only without its capabilities."""
    if os.geteuid():
        return ()
    starter = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    if not shutil.which("setpriv") or subprocess.run([*starter, "true"], capture_output=True).returncode:
        pytest.skip("root may write everywhere, and setpriv cannot change that here")
    return starter


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    paths = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(path.stat().st_mode | 0o200)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if not line.startswith("Using profile ")]


def listed(checkout: Checkout, starter: tuple[str, ...], **environment: str) -> list[str]:
    """What `fedrepro list studies` says."""
    command = [*starter, sys.executable, "-m", "fedrepro.commands.cli", "list", "studies"]
    known = checkout.environment(**environment)
    done = subprocess.run(command, cwd=checkout.folder, env=known, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("home", ["/dev/null/x", "read-only"])
def test_a_home_folder_that_cannot_be_written_to_is_named_with_what_to_set(fresh, bound, tmp_path, home):
    (tmp_path / "read-only").mkdir(mode=0o555)
    variables = {"HOME": str(tmp_path / home), "XDG_CACHE_HOME": ""}  # an absolute path stays as it is
    assert any("toy" in line for line in listed(fresh, bound, **variables))
    done = fresh.snakemake("toy/fig3b", starter=bound, **variables)
    assert done.returncode == 1
    why = "Permission denied" if home == "read-only" else "Not a directory"
    folder = Path(variables["HOME"], ".cache", "snakemake")
    says = f"error: {folder}: cannot be written to: {why}; set XDG_CACHE_HOME to a folder that can be"
    assert told(done) == [says]
    assert not fresh.results.exists()


def test_with_another_cache_folder_no_home_folder_is_needed(fresh, bound):
    done = fresh.snakemake("toy/fig3b", starter=bound, HOME="/dev/null/x")
    assert done.returncode == 0, done.stderr
    assert (fresh.results / "artefacts" / "toy" / "fig3b.svg").exists()


def test_a_checkout_that_cannot_be_written_to_is_named(fresh, bound, tmp_path):
    before = sorted(fresh.folder.rglob("*"))
    with read_only(fresh.folder):
        assert any("toy" in line for line in listed(fresh, bound))
        done = fresh.snakemake("toy/fig3b", starter=bound, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert told(done) == [f"error: {fresh.folder}/.snakemake: cannot be written to: Permission denied"]
    assert sorted(fresh.folder.rglob("*")) == before
