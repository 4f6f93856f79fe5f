"""A private checkout with a small config, run once for all tests; each test works on a copy of the results."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from fedrepro.core.experiment import expanded
from fedrepro.evidence.claim_files import quantities_of
from fedrepro.files import ROOT, read_yaml
from tests import slurm as slurms
from tests.configs import write_yaml

PARTS = ("Snakefile", "Makefile", "pyproject.toml", "workflow", "scripts", "config", "notebooks", "src", "envs")
#: what is kept of the study
EXPERIMENTS = ("line", "faults")
ARTEFACTS = ("fig3b", "faults")
#: SMOKE_ONLY=<study> restricts the tests of the whole workflow to one study
SMOKE_STUDIES = os.environ.get("SMOKE_ONLY", "").split()
SMOKE_ONLY = (f"only={' '.join(SMOKE_STUDIES)}",) if SMOKE_STUDIES else ()


@dataclass(frozen=True)
class Checkout:
    """A folder with the workflow, its own source (not the installed one) and its own cache."""

    folder: Path

    def environment(self, **more: str) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PYTHONPATH": str(self.folder / "src"), "XDG_CACHE_HOME": str(self.folder / "cache"), "PATH": path}
        return {**os.environ, **own, **more}

    def snakemake(self, *targets: str, config: tuple[str, ...] = (), options=(), starter=(), **environment: str):
        """`make reproduce` without make: the local profile at smoke scale. starter: a command that starts it."""
        command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "2"]
        return subprocess.run(
            [*starter, *command, *options, "--config", "scale=smoke", *config, "--", *targets],
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=5000,  # only a hang takes this long
        )

    def jobs(self, *targets: str, config: tuple[str, ...] = ()) -> set[str]:
        """The messages of the jobs that a run would start, without the target itself."""
        done = self.snakemake(*targets, config=config, options=("--dry-run",))
        assert done.returncode == 0, done.stderr
        listed = done.stderr.partition("Building DAG of jobs...\n")[2].partition("Reasons:")[0].splitlines()
        if listed[:1] and listed[0].startswith("Nothing to be done"):
            return set()
        assert len(listed) == len(set(listed))
        return set(listed) - {*targets, "all"}

    def append(self, path: str, text: str) -> None:
        with open(self.folder / path, "a", encoding="utf-8") as file:
            file.write(text)

    def rewrite(self, path: str, change) -> None:
        """Read a YAML file, let `change` alter its content, write it back."""
        content = read_yaml(self.folder / path)
        change(content)
        (self.folder / path).write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))

    @property
    def results(self) -> Path:
        return self.folder / "results" / "smoke"


def copy_tree(source: Path, target: Path) -> None:
    """Copy with the files' times, which tell the workflow what is up to date."""
    shutil.copytree(source, target, copy_function=shutil.copy2, symlinks=True)


def copy_checkout(folder: Path, source: Path = ROOT) -> Checkout:
    """The sources of this checkout, or of another."""
    folder.mkdir(parents=True)
    for part in PARTS:
        copy = copy_tree if (source / part).is_dir() else shutil.copy2
        copy(source / part, folder / part)
    return Checkout(folder)


def make_checkout(folder: Path) -> Checkout:
    """The sources of this checkout with one study, `toy`: a copy of the study that has an experiment `faults`, cut down
    to two short experiments. The second one also runs fedprox, and fedavg with a step so long that it diverges."""
    checkout = copy_checkout(folder)
    (faults,) = (folder / "config" / "studies").glob("*/experiments/faults.yaml")
    study = faults.parents[1].name
    for home in ("config/studies", "src/fedrepro/studies"):
        (folder / home / study).rename(folder / home / "toy")
        for path in (folder / home).iterdir():
            if path.is_dir() and path.name != "toy":
                shutil.rmtree(path)
    for home in ("config", "src/fedrepro/studies", "notebooks"):
        rename(folder / home, study, "toy")
    whole = expanded(folder / "config", "toy")
    shutil.rmtree(folder / "config" / "studies" / "toy" / "experiments")
    for name in EXPERIMENTS:
        write_yaml(folder / "config" / "studies" / "toy" / "experiments" / f"{name}.yaml", whole[name].tree.plain())

    def shorten(experiment: dict[str, Any]) -> None:
        experiment["scales"]["smoke"] |= {"rounds": 6, "seeds": 2, "local": {"steps": 20}}

    def add_methods(experiment: dict[str, Any]) -> None:
        shorten(experiment)
        experiment["algorithms"] |= {"fedprox": {"lr": 0.05}, "wild": {"method": "fedavg", "lr": 1.0e6}}

    def keep_artefacts(artefacts: dict[str, Any]) -> None:
        for name in set(artefacts) - set(ARTEFACTS):
            del artefacts[name]

    def on_what_is_there(part: dict[str, Any]) -> bool:
        return {e for e, _ in quantities_of(part)} <= set(EXPERIMENTS)

    def keep_claims(file: dict[str, Any]) -> None:
        for claim in file["claims"].values():
            kept = {name: way for name, way in claim.pop("readings", {}).items() if on_what_is_there(way)}
            claim |= {"readings": kept} if kept else {}
        file["claims"] = {id: claim for id, claim in file["claims"].items() if on_what_is_there(claim)}
        claims.extend(file["claims"])

    def keep_headlines(study: dict[str, Any]) -> None:
        study["headlines"] = {id: h for id, h in study["headlines"].items() if set(h["claims"]) <= set(claims)}
        study["main"] = next(iter(study["headlines"]))

    claims: list[str] = []

    checkout.rewrite("config/studies/toy/experiments/line.yaml", shorten)
    checkout.rewrite("config/studies/toy/experiments/faults.yaml", add_methods)
    checkout.rewrite("config/studies/toy/artefacts.yaml", keep_artefacts)
    checkout.rewrite("config/studies/toy/claims.yaml", keep_claims)
    checkout.rewrite("config/studies/toy/study.yaml", keep_headlines)
    keep_shown(folder / "notebooks" / "toy.ipynb")
    return checkout


def rename(folder: Path, old: str, new: str) -> None:
    """Replace a study's name in all files below a folder, and in the name of its method's file."""
    for path in [path for path in folder.rglob("*.*") if path.suffix in (".py", ".yaml", ".csv", ".ipynb")]:
        path.write_text(re.sub(rf"(?<!\w){old}(?!\w)", new, path.read_text()))
        if path.stem == old:
            path.rename(path.with_stem(new))


def keep_shown(notebook: Path) -> None:
    """Leave out the lines that show artefacts which the small config does not have."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        cell["source"] = [
            line
            for line in cell["source"]
            if not (shown := re.search(r'\.show\("(\w+)"\)', line)) or shown[1] in ARTEFACTS
        ]
    notebook.write_text(json.dumps(content), encoding="utf-8")


def once(
    tmp_path_factory, name: str, make: Callable[[Path], Checkout], *config: str
) -> tuple[Checkout, dict[str, Any]]:
    """A checkout and the outcome of its complete run, shared by all workers: the first worker runs it, the others wait.
    Tests must not change it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, outcome = shared / name, shared / f"{name}.json"
    with FileLock(shared / f"{name}.lock"):
        if not outcome.exists():
            done = make(folder).snakemake("all", config=config)
            outcome.write_text(json.dumps({"returncode": done.returncode, "err": done.stderr, "out": done.stdout}))
    return Checkout(folder), json.loads(outcome.read_text())


@pytest.fixture(scope="session")
def first_run(tmp_path_factory) -> tuple[Checkout, dict[str, Any]]:
    """The small checkout after its first run."""
    return once(tmp_path_factory, "checkout", make_checkout)


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory) -> tuple[Checkout, dict[str, Any]]:
    """The committed workflow after a run at smoke scale."""
    return once(tmp_path_factory, "smoke", copy_checkout, *SMOKE_ONLY)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if reason := slurms.missing():
        pytest.skip(reason)
    with slurms.one_node(tmp_path_factory.mktemp("slurm") / "node") as node:
        yield node


@pytest.fixture
def checkout(first_run, tmp_path) -> Checkout:
    """A copy of the checkout and its results, which a test may change."""
    finished, outcome = first_run
    assert outcome["returncode"] == 0, outcome["err"]
    copy_tree(finished.folder, tmp_path / "checkout")
    return Checkout(tmp_path / "checkout")


@pytest.fixture
def fresh(tmp_path) -> Checkout:
    """The checkout before any run."""
    return make_checkout(tmp_path / "checkout")
