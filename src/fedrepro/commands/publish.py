"""`fedrepro publish FOLDER [STUDY…]` (`make publish`): results as one folder for an archive (docs/publish.md).

A Workflow Run RO-Crate with the report, the verdicts and their provenance, the code and the environment; Croissant
metadata of the data sets; metadata for Zenodo. Nothing is run and nothing is sent anywhere.
"""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import Command, shown, study_names
from fedrepro.core import parts
from fedrepro.errors import UserError
from fedrepro.files import WORK


def publish(given: Namespace) -> Iterator[str]:
    from fedrepro.report.publication import folder
    from fedrepro.workflow.run_lock import busy

    if not given.folder.is_dir():
        raise UserError(f"{given.folder}: there is no such folder: `make reproduce` makes results")
    if told := busy(str(given.folder)):
        raise UserError(told)
    parts.add_studies(filter(None, given.studies.split(os.pathsep)))
    only = [name for words in given.study for name in words.replace(",", " ").split()]
    target = given.to or WORK / "results" / "publish" / given.folder.resolve().name
    done = folder.publish(given.folder, target, only, replace=given.replace)
    yield f"{shown(done.folder)}: {done.files} files, {done.verdicts} verdicts"
    if done.commit.endswith("+"):
        yield "note: the code has changes that are in no commit; code/ holds them, and the metadata says so"
    yield f"`fedrepro verify {shown(done.folder)}` checks it; docs/publish.md tells how to upload it"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a results folder: results/demo, results/reference")
    parser.add_argument("study", nargs="*", help="publish these studies only")
    parser.add_argument("--to", type=Path, help="folder to write; default: results/publish/<name of FOLDER>")
    parser.add_argument("--replace", action="store_true", help="replace an earlier one that was not changed since")
    parser.add_argument("--studies", default="", help=f"folders of studies of your own, separated by '{os.pathsep}'")


COMMAND = Command(
    help="write results, verdicts and their provenance as a folder for an archive",
    arguments=arguments,
    run=publish,
    words=study_names,
)
