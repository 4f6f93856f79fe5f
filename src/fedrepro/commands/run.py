"""`fedrepro run FOLDER`: run studies of your own folders; without a checkout into ./results, else into the checkout's.

A thin wrapper of snakemake, like `make reproduce`: the code in the folders is run.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import Command, read_rows, shown, wrapped
from fedrepro.core import outside, parts
from fedrepro.core.experiment import SCALES
from fedrepro.errors import UserError
from fedrepro.files import ROOT, WORK
from fedrepro.workflow.call import launch

FAILED = "the run did not finish: see above, and `fedrepro status`"


def run(given: Namespace) -> Iterator[str]:
    parts.add_studies(given.folder)
    asked = {path.resolve() for path in given.folder}
    studies = [name for name, folder in outside.known().items() if {folder, folder.parent} & asked]
    config = [f"scale={given.scale}", f"only={' '.join(studies)}", *given.setting]
    bin_folder = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {"FEDREPRO_WARM": "early", **os.environ, "PATH": bin_folder}
    if launch(asked_of_snakemake(config, given.cores), cwd=WORK, environment=environment).returncode:
        raise UserError(FAILED)
    results = WORK / "results" / given.scale
    for study in studies:
        for row in read_rows(results / "headlines" / f"{study}.csv"):
            yield from wrapped(f"{study}: {row['says']} {row['verdict']}: {row['reason']}", rest="  ")
        for row in read_rows(results / "ledgers" / f"{study}.csv"):
            yield from wrapped(f"{row['claim']}: {row['verdict']}", "  ", "    ")
    yield f"report: {shown(results / 'report' / 'index.html')}"


def asked_of_snakemake(config: list[str], cores: str) -> list[str]:
    """The arguments that run this package's workflow with the local profile."""
    places = ["--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "workflow" / "profiles" / "local")]
    return [*places, "--cores", cores, "--config", *config, "--", "all"]


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", type=Path, help="a study's folder, or one that holds studies")
    parser.add_argument("--scale", choices=SCALES, default="demo", help="default: demo")
    parser.add_argument("--cores", default="all", help="default: all")
    parser.add_argument("--set", dest="setting", nargs="*", default=[], metavar="KEY=VALUE", help="of config.yaml")


COMMAND = Command(help="run studies of your own folders and tell their verdicts", arguments=arguments, run=run)
