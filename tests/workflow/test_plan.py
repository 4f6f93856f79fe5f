"""The plan names the jobs that the run will have."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fedrepro.core.study import load_studies
from fedrepro.files import ROOT

pytestmark = pytest.mark.workflow


def output(*command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_the_plan_has_as_many_jobs_as_the_run(tmp_path):
    config = ["scale=smoke", f"only={next(iter(load_studies(ROOT / 'config')))}", f"results={tmp_path}"]
    run = output("snakemake", "--dry-run", "--quiet", "rules", "--cores", "1", "--config", *config)
    planned = re.search(r"(\d+) jobs from scratch", output("fedrepro.commands.cli", "plan", *config))
    assert planned[1] == re.search(r"(?m)^total +(\d+)", run)[1]
