"""`fedrepro list`: studies, artefacts, algorithms and data sets.

Files are read; no part is imported. Nothing is expanded or validated either: both take longer than all the rest.
`fedrepro show STUDY` counts a study's experiments and claims.
"""

import ast
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fedrepro.commands import command
from fedrepro.commands.command import Command
from fedrepro.core import parts
from fedrepro.core.study import load_studies, study_folders
from fedrepro.files import is_regular, read_yaml


def list_all(given: Namespace) -> Iterator[str]:
    for name in [given.what] if given.what else LISTS:
        yield f"{name}:"
        rows = list(LISTS[name]())
        width = max((len(first) for first, _ in rows), default=0)
        yield from (f"  {first:<{width}}  {rest}" for first, rest in rows)
        yield ""


def rows(given: Namespace) -> Iterator[dict[str, str]]:
    for kind in [given.what] if given.what else LISTS:
        yield from ({"kind": kind, "name": name, "about": about} for name, about in LISTS[kind]())


def described() -> list[tuple[str, Path, dict[str, Any]]]:
    """Name, folder and study.yaml of each study, in the order of display."""
    found = []
    for name, folder in study_folders(command.CONFIG).items():
        if is_regular(path := folder / "study.yaml"):
            about = read_yaml(path)
            if not (isinstance(about, dict) and {"title", "authors", "venue"} <= about.keys()):
                load_studies(command.CONFIG)  # tells what is wrong
            found.append((name, folder, about))
    return sorted(found, key=lambda study: (study[2].get("order", math.inf), study[0]))


def studies() -> Iterator[tuple[str, str]]:
    for name, _, about in described():
        yield name, f"{about['title']}: {', '.join(about['authors'])} ({about['venue']})"


def artefacts() -> Iterator[tuple[str, str]]:
    for study, folder, _ in described():
        declared = folder / "artefacts.yaml"
        for name, spec in read_yaml(declared).items() if is_regular(declared) else ():
            yield f"{study}/{name}", f"{spec['title']} ({spec['source']})"


def part_names(kind: str) -> Iterator[tuple[str, str]]:
    """The parts of a kind, each with the first sentence of its module's docstring; nothing is imported."""
    for name, module in sorted(parts.modules(kind).items()):
        paragraph, *_ = (ast.get_docstring(parts.source(module)) or "").split("\n\n")
        yield name, re.split(r"(?<=[a-z]{3}\.) (?=[A-Z])", " ".join(paragraph.split()))[0]


LISTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {"studies": studies, "artefacts": artefacts}
LISTS |= {kind: partial(part_names, kind) for kind in ("algorithms", "datasets")}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=sorted(LISTS))


COMMAND = Command(
    help="studies, artefacts, algorithms, data sets",
    arguments=arguments,
    run=list_all,
    rows=rows,
    words=lambda: LISTS,
    examples=("", "studies", "algorithms --json"),
)
