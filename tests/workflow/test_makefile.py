"""The commands: the list of `make`, and the arguments that reach snakemake."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro.files import ROOT
from fedrepro.workflow.interrupts import SIGNALS

RECORD = f"""#!{sys.executable}
import json, signal, sys
from pathlib import Path
assert sys.argv[1:3] == ["-m", "fedrepro.workflow.launch"]
Path("called.json").write_text(json.dumps(sys.argv[3:]))
Path("held.json").write_text(json.dumps(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))))
"""


@pytest.fixture
def make(tmp_path):
    """Runs make in a folder where set-up is done and snakemake only records its arguments."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").write_text(RECORD)
    (bin_folder / "python").chmod(0o755)
    (tmp_path / "ready").touch()
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

    def run(*arguments: str, folder: Path = tmp_path, **more: str) -> str:
        command = ["make", "--no-print-directory", "STAMP=ready", "GPUS=0", *arguments]
        environ = {**environment, **more}
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def called(folder) -> list[str]:
    return json.loads((folder / "called.json").read_text())


def test_make_alone_lists_the_commands(make):
    listed = make()
    declared = re.findall(r"(?m)^([a-z-]+):.*## ", (ROOT / "Makefile").read_text())
    assert {"reproduce", "test", "plan", "report", "bench", "clean"} <= set(declared)
    assert re.findall(r"(?m)^  make ([a-z-]+) +\S", listed) == declared
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


def test_publish_names_the_folder_and_the_studies_behind_the_options(make):
    line = make("-n", "publish", "SCALE=smoke", "ONLY=toy -x", "STUDIES=/my study", "ARGS=--replace")
    options = ["--replace", "--studies=/my study"]
    assert shlex.split(line) == [".venv/bin/fedrepro", "publish", *options, "--", "results/smoke", "toy -x"]


def test_as_many_training_jobs_as_gpus_on_this_machine_and_as_the_scheduler_says_on_a_cluster(make, tmp_path):
    make("reproduce", "GPUS=2")
    profile = ["--profile", "workflow/profiles/local"]
    assert called(tmp_path) == [*profile, "--resources", "gpu=2", "--config", "scale=demo", "--", "all"]
    make("reproduce", "GPUS=2", "PROFILE=slurm")
    assert called(tmp_path) == ["--profile", "workflow/profiles/slurm", "--config", "scale=demo", "--", "all"]


@pytest.mark.skipif(
    subprocess.run(["env", "--block-signal=INT", "true"], capture_output=True).returncode != 0, reason="no GNU env"
)
@pytest.mark.parametrize("target", ["reproduce", "report"])
def test_signals_are_held_back_until_the_run_can_handle_them(make, tmp_path, target):
    """What it does with them then: tests/unit/workflow/test_launch.py."""
    make(target)
    assert json.loads((tmp_path / "held.json").read_text()) == sorted(SIGNALS)


HOSTILE = [
    *("x'; touch broken; echo '", 'x"; touch broken; "', "`touch broken`", "a & touch broken", "a; touch broken #"),
    *("$(touch broken)", "$(shell touch broken)", "${shell touch broken}", "$$(touch broken)", "a|touch broken"),
]
#: variable → the argument of snakemake that holds its value
HELD = {
    "SCALE": "scale={}",
    "ONLY": "only={}",
    "STUDIES": "studies={}",
    "DATA_DIR": "data_dir={}",
    "DEVICE": "device={}",
    "PROFILE": "workflow/profiles/{}",
    "CORES": "{}",
    "GPUS": "gpu={}",
}
OTHERS = ("ARGS", "SERVICE", "CLAIM", "BUDGET", "TORCH_INDEX")
CLOSED = ("TORCH",)  # refused before anything runs, unless it is one of its values


def test_every_variable_is_tried():
    declared = re.findall(r"(?m)^([A-Z_]+) \?=", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(declared) == {*HELD, *OTHERS, *CLOSED}


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", HELD)
def test_a_value_is_text(make, tmp_path, name, value):
    dry = make("-n", "reproduce", f"{name}={value}")
    assert "--config" in dry
    assert not (tmp_path / "called.json").exists()
    make("reproduce", f"{name}={value}")
    assert HELD[name].format(value) in called(tmp_path)
    make("report", **{name: value} if name != "GPUS" else {})  # the same from the environment
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("value", HOSTILE)
def test_further_arguments_are_words(make, tmp_path, value):
    make("reproduce", f"ARGS=--dry-run {value}")
    given = called(tmp_path)
    assert given[given.index("--dry-run") : -2] == ["--dry-run", *value.split()]
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(
    "target",
    [
        "data",
        "plan",
        "explain",
        "publish",
        "check-reference",
        "docs",
        "test",
        "test-slow",
        "coverage",
        "bench",
        "audit",
    ],
)
def test_no_target_runs_a_value(make, tmp_path, target):
    """Of the targets that do not call snakemake: what make would run, given to a shell that only records."""
    given = [f"{name}={value}" for name in (*HELD, *OTHERS) for value in ["x'; touch broken; echo '"]]
    (tmp_path / "shell").write_text('#!/bin/sh\nexec sh -n -c "$2"\n')
    (tmp_path / "shell").chmod(0o755)
    told = make(f"SHELL={tmp_path}/shell", "BENCH_STAMP=ready", "-o", "lint", target, *given)
    assert "touch" not in told
    lines = make("-n", "BENCH_STAMP=ready", "-o", "lint", target, *given)
    assert "; touch broken; " not in re.sub(r"'(?:[^']|'\\'')*'", "quoted", lines)
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("name", [*HELD, *OTHERS, *CLOSED])
def test_a_line_break_is_refused(make, tmp_path, name):
    with pytest.raises(AssertionError, match=f"{name}: a line break is not possible in it"):
        make("reproduce", f"{name}=x'\ntouch broken\n'")
    assert not (tmp_path / "broken").exists()


def test_the_folders_own_name_is_text(make, tmp_path):
    """`make` lies in a folder whose name would run a command."""
    nasty = tmp_path / "a`touch broken`\"'; touch broken; '"
    nasty.mkdir()
    for path in list(tmp_path.iterdir()):
        if path != nasty:
            path.rename(nasty / path.name)
    said = make("reproduce", folder=nasty)
    assert said == f"report: {nasty}/results/demo/report/index.html\n"
    assert not (nasty / "broken").exists()
