"""`fedrepro open`: the report, a study's notebook or an artefact's picture, in the browser."""

import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands import command
from fedrepro.commands.command import Command, folder_argument, folder_with, shown, study_names
from fedrepro.commands.list import artefacts
from fedrepro.core.study import study_of
from fedrepro.errors import UserError, nearest


def open_page(given: Namespace) -> Iterator[str]:
    path = page_of(given.name, given.folder)
    yield shown(path)
    if not given.print and not webbrowser.open(path.resolve().as_uri()):
        raise UserError(f"no browser was found: open {shown(path)} in one")


def page_of(name: str | None, folder: Path | None) -> Path:
    """The file that shows the run, a study or an artefact."""
    if name is None:
        file = "report/index.html"
        return folder_with(file, folder, "report") / file
    if "/" not in name:
        file = f"notebooks/{study_of(command.CONFIG, name).name}.html"
        return folder_with(file, folder, f"notebook of {name}") / file
    known = [artefact for artefact, _ in artefacts()]
    if name not in known:
        raise UserError(f"artefact '{name}' is unknown{nearest(name, known)}")
    file = f"artefacts/{name}.png"
    return folder_with(file, folder, f"picture of {name}") / file


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="STUDY: its notebook; STUDY/ARTEFACT: its picture; else the report")
    parser.add_argument("--print", action="store_true", help="only print the path")
    folder_argument(parser)


COMMAND = Command(
    help="the report, a notebook or a picture, in the browser",
    arguments=arguments,
    run=open_page,
    words=lambda: [*study_names(), *(name for name, _ in artefacts())],
    examples=("--print --in results/reference",),
)
