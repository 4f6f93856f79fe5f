"""Odd environments: a Python without UTF-8, a home folder that is missing or may not be written, a read-only checkout.
Either the run works, or one line says why it does not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fedrepro.data.catalogue import cache_folder
from fedrepro.errors import UserError

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
