"""A command of `fedrepro`, and what several commands share: places, folders of results, rows of csv files, widths.

A module of this folder is a command if it defines `COMMAND`; its file name is the command's name. It imports what is
slow to import (torch, pandas, scipy) inside its functions, so that every command starts at once.
"""

import csv
import shutil
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.core.checksums import check
from fedrepro.core.study import load_studies, study_of
from fedrepro.errors import UserError
from fedrepro.files import ROOT, WORK

CONFIG = ROOT / "config"
PROSE = 100  # columns of wrapped text where no terminal says how many there are


def _no_arguments(parser: ArgumentParser) -> None:
    """A command without arguments."""


@dataclass(frozen=True)
class Command:
    """What `fedrepro NAME` says about itself, takes and does. `run` yields the lines of the output; a command with
    `rows` has `--json`; `words` are the names that a shell completes; `examples` are what follows `fedrepro NAME`, with
    `{study}`, `{claim}`, `{artefact}` and `{experiment}` for names of the reference."""

    help: str
    run: Callable[[Namespace], Iterator[str]]
    arguments: Callable[[ArgumentParser], None] = _no_arguments
    rows: Callable[[Namespace], Iterable[Mapping[str, Any]]] | None = None
    words: Callable[[], Iterable[str]] | None = None
    examples: tuple[str, ...] = ()


def folder_argument(parser: ArgumentParser) -> None:
    """`--in FOLDER`: the results to look at."""
    parser.add_argument("--in", dest="folder", type=Path, help="a results folder, such as results/demo")


def example_names() -> dict[str, str]:
    """A study of the committed reference, and one claim, artefact and experiment of it."""
    reference = ROOT / "results" / "reference"
    row = next(iter(read_rows(reference / "ledger.csv")), {"claim": "STUDY/CLAIM", "study": "STUDY"})
    study = row["study"]
    artefact = min((path.stem for path in reference.glob(f"artefacts/{study}/*.json")), default="ARTEFACT")
    experiment = min((path.name for path in reference.glob(f"runs/{study}/*")), default="EXPERIMENT")
    places = {"artefact": f"{study}/{artefact}", "experiment": f"{study}/{experiment}"}
    return {"study": study, "claim": row["claim"], **places}


def studies_argument(parser: ArgumentParser) -> None:
    """Names of studies; all if none is given."""
    parser.add_argument("study", nargs="*")


def ledger_arguments(parser: ArgumentParser) -> None:
    """Which ledgers `ledger_rows` reads: of studies, in a folder."""
    studies_argument(parser)
    folder_argument(parser)


def study_names() -> list[str]:
    return list(load_studies(CONFIG))


def folder_with(file: str, folder: Path | None, what: str) -> Path:
    """The given results folder, else the newest of results/ that has the file; the reference comes last."""
    if folder is not None:
        if (folder / file).is_file():
            return folder
        raise UserError(f"{folder}: has no {what}")
    found = [path for path in (WORK / "results").glob("*/") if (path / file).is_file()]
    if not found:
        raise UserError(f"there is no result of {what} yet: `make reproduce ONLY={what.split()[-1]}` makes it")
    return max(found, key=lambda path: (path.name != "reference", (path / file).stat().st_mtime))


def ledgers(studies: Iterable[str], folder: Path | None) -> Iterator[Path]:
    """The ledgers of the studies; of all that have one if none is named."""
    named = [study_of(CONFIG, name).name for name in studies]
    for study in named or load_studies(CONFIG):
        file = f"ledgers/{study}.csv"
        try:
            yield folder_with(file, folder, f"ledger of {study}") / file
        except UserError:
            if named:
                raise


def ledger_rows(given: Namespace) -> Iterator[dict[str, str]]:
    """The rows of the ledgers that `ledger_arguments` ask for."""
    for path in ledgers(given.study, given.folder):
        yield from read_rows(path)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a csv file as texts; none if it does not exist."""
    if not path.is_file():
        return []
    with check(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(path: Path) -> str:
    """A path, relative to the current folder where it lies below it."""
    path, here = path.resolve(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def terminal_width() -> int | None:
    """Columns of the terminal; None in a pipe or a file, where no line is cut."""
    return shutil.get_terminal_size((PROSE, 24)).columns if sys.stdout.isatty() else None


def in_columns(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Lines in which the cells of a column begin at the same place."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Prose in lines of the terminal's width. first, rest: what the first and the other lines begin with."""
    return textwrap.wrap(text, terminal_width() or PROSE, initial_indent=first, subsequent_indent=rest)
