"""The commands: the list of `make`, and the arguments that reach snakemake."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from fedrepro.files import ROOT

RECORD = f"""#!{sys.executable}
import json, sys
from pathlib import Path
Path("called.json").write_text(json.dumps(sys.argv[1:]))
"""


@pytest.fixture
def make(tmp_path):
    """Runs make in a folder where set-up is done and snakemake only records its arguments."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "snakemake").write_text(RECORD)
    (bin_folder / "snakemake").chmod(0o755)
    (tmp_path / "ready").touch()
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

    def run(*arguments: str) -> str:
        command = ["make", "--no-print-directory", "STAMP=ready", "GPUS=0", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def called(folder) -> list[str]:
    return json.loads((folder / "called.json").read_text())


def test_make_alone_lists_the_commands(make):
    listed = make()
    declared = re.findall(r"(?m)^([a-z]+):.*## ", (ROOT / "Makefile").read_text())
    assert {"reproduce", "test", "plan", "report", "bench", "clean"} <= set(declared)
    assert re.findall(r"(?m)^  make ([a-z]+) +\S", listed) == declared
    assert all(name in listed for name in ("SCALE", "ONLY", "DATA_DIR", "PROFILE"))


def test_reproduce_is_a_line_over_snakemake(make, tmp_path):
    asked = ("SCALE=smoke", "ONLY=toy toy/fig3b", "STUDIES=/my study:b", "DATA_DIR=/my data", "CORES=2", "DEVICE=cpu")
    said = make("reproduce", *asked)
    assert called(tmp_path) == [
        *("--profile", "workflow/profiles/local", "--cores", "2"),
        *("--config", "scale=smoke", "only=toy toy/fig3b", "studies=/my study:b", "data_dir=/my data", "device=cpu"),
        *("--", "all"),
    ]
    assert said == f"report: {tmp_path}/results/smoke/report/index.html\n"


def test_what_is_not_given_is_left_to_the_config(make, tmp_path):
    make("reproduce")
    assert called(tmp_path) == ["--profile", "workflow/profiles/local", "--config", "scale=demo", "--", "all"]


def test_as_many_training_jobs_as_gpus_on_this_machine_and_as_the_scheduler_says_on_a_cluster(make, tmp_path):
    make("reproduce", "GPUS=2")
    profile = ["--profile", "workflow/profiles/local"]
    assert called(tmp_path) == [*profile, "--resources", "gpu=2", "--config", "scale=demo", "--", "all"]
    make("reproduce", "GPUS=2", "PROFILE=slurm")
    assert called(tmp_path) == ["--profile", "workflow/profiles/slurm", "--config", "scale=demo", "--", "all"]


@pytest.mark.parametrize("only", ["toy'; touch broken; echo '", 'toy"; touch broken; "', "`touch broken`", "a & b | c"])
def test_quotes_and_semicolons_stay_text(make, tmp_path, only):
    dry = make("-n", "reproduce", f"ONLY={only}")
    assert "--config" in dry
    assert not (tmp_path / "called.json").exists()
    make("reproduce", f"ONLY={only}")
    assert f"only={only}" in called(tmp_path)
    assert not (tmp_path / "broken").exists()
