"""Studies outside the checkout: a wheel in a fresh environment, what an edit re-runs, use as a module."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pandas as pd
import pytest

from fedrepro.commands.new_study import write_study
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT

pytestmark = pytest.mark.workflow

MODULE = """
from fedrepro.files import ROOT

module fedrepro:
    snakefile: str(ROOT / "Snakefile")
    config: {"scale": "smoke", "studies": ["mine"], "only": ["mine"]}

use rule * from fedrepro as fedrepro_*

rule verdicts:
    default_target: True
    input: "results/smoke/ledger.csv"
"""


class Fresh:
    """An environment with the wheel and, from this one, all packages but the checkout itself."""

    def __init__(self, folder: Path):
        self.folder, self.bin = folder, folder / "env" / "bin"
        wheels, shared = folder / "wheels", Path(sysconfig.get_path("purelib"))
        pip = (sys.executable, "-m", "pip")
        self.call(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(self.copy()))
        self.call(sys._base_executable, "-m", "venv", "--without-pip", str(folder / "env"))
        (wheel,) = wheels.glob("*.whl")
        own = (*pip, "--python", str(self.bin / "python"))
        self.call(*own, "install", "-q", "--no-deps", "--no-index", str(wheel))
        site = self.folder / "env" / shared.relative_to(sys.prefix)
        (site / "shared.pth").write_text(f"{shared}\n")  # a path is added, and .pth files in it are not read
        (folder / "env" / "share").symlink_to(Path(sys.prefix) / "share")  # the notebooks' html templates

    def copy(self) -> Path:
        """The files that git would commit: building leaves files beside them."""
        source = self.folder / "source"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
        )
        for name in (n for n in listed.stdout.splitlines() if not n.startswith(("results/", "tests/"))):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
        return source

    def call(self, *command: str) -> str:
        apart = ("PYTHONPATH", "FEDREPRO_STUDIES")
        environment = {k: v for k, v in os.environ.items() if k not in apart}
        environment |= {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=5000)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def fedrepro(self, *arguments: str) -> str:
        return self.call(str(self.bin / "fedrepro"), *arguments)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> tuple[Fresh, str]:
    """A new study after `fedrepro run`, from a wheel; and what the command said."""
    fresh = Fresh(tmp_path_factory.mktemp("wheel"))
    fresh.fedrepro("new-study", "mine")
    return fresh, fresh.fedrepro("run", "mine", "--cores", "2")


def test_a_wheel_runs_a_new_study_to_a_verdict(installed):
    fresh, said = installed
    assert "mine: With momentum the same number of rounds gives a lower loss. reproduced" in said
    results = fresh.folder / "results" / "demo"
    verdicts = pd.read_csv(results / "ledgers" / "mine.csv").set_index("claim")["verdict"].to_dict()
    assert verdicts == dict.fromkeys(("mine/faster", "mine/much_closer", "mine/table1_momentum"), "reproduced")
    assert any("mine/curves" in page.read_text() for page in (results / "report").glob("*.html"))
    assert (results / "notebooks" / "mine.html").is_file()
    place = fresh.call(str(fresh.bin / "python"), "-c", "import fedrepro; print(fedrepro.__file__)").strip()
    assert Path(place).is_relative_to(fresh.folder / "env")


def test_the_study_passes_its_own_test_and_the_contracts(installed):
    fresh, _ = installed
    fresh.call(str(fresh.bin / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "mine")
    said = fresh.fedrepro("check", "mine")
    assert said.splitlines()[-1] == "mine: all hold"
    assert "mine_momentum" in said
    assert "mine_lines" in said


def test_the_example_runs_at_smoke_scale(tmp_path):
    """From the checkout, as a user would: `fedrepro run examples/q_ffl`."""
    settings = ("--scale", "smoke", "--cores", "2", "--set", f"results={tmp_path}")
    command = [sys.executable, "-m", "fedrepro.commands.cli", "run", "examples/q_ffl", *settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=5000)
    assert done.returncode == 0, done.stderr
    ledger = pd.read_csv(tmp_path / "smoke" / "ledgers" / "q_ffl.csv")
    claims = load_claims(ROOT / "examples" / "q_ffl" / "claims.yaml").claims
    assert sorted(ledger["claim"]) == sorted(f"q_ffl/{claim}" for claim in claims)
    assert not ledger["reason"].str.contains("must say which|has no value|no table", regex=True).any()
    table = pd.read_csv(tmp_path / "smoke" / "artefacts" / "q_ffl" / "table1.csv", dtype=str)
    assert table["q"].tolist() == ["0", "1"]
    assert table["variance, printed"].tolist() == ["724", "472"]


@pytest.fixture(scope="module")
def other_workflow(tmp_path_factory):
    """A workflow that uses this one as a module, on a study of its own, after its run. Returns `run`."""
    folder = tmp_path_factory.mktemp("module")
    write_study(folder / "mine")
    (folder / "Snakefile").write_text(MODULE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(*options: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--rerun-triggers", "mtime", "params", "input"]
        environment = {**os.environ, "PATH": path}
        return subprocess.run([*command, *options], cwd=folder, env=environment, capture_output=True, text=True)

    done = run("--quiet")
    assert done.returncode == 0, done.stderr
    return folder, run


def test_another_workflow_uses_this_one_as_a_module(other_workflow):
    folder, _ = other_workflow
    ledger = pd.read_csv(folder / "results" / "smoke" / "ledger.csv")
    assert list(ledger["study"].unique()) == ["mine"]
    assert set(ledger["verdict"]) == {"not tested"}  # five rounds of forty


def test_an_edit_of_its_code_reruns_what_depends_on_it(other_workflow):
    folder, run = other_workflow

    def jobs() -> dict[str, str]:
        """Rule → number of its jobs that a run would start."""
        done = run("--dry-run")
        return dict(re.findall(r"(?m)^fedrepro_(\w+) +(\d+)$", done.stdout + done.stderr))

    assert jobs() == {}
    with (folder / "mine" / "algorithms" / "mine_momentum.py").open("a") as file:
        file.write("\nEDITED = True\n")
    one_method = dict.fromkeys(("train_algorithm", "collect_metrics", "judge_claims", "merge_ledgers"), "1")
    assert jobs() == one_method
    with (folder / "mine" / "measures.py").open("a") as file:
        file.write("\n# only a comment\n")
    assert jobs() == one_method
