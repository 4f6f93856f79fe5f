"""`fedrepro list`: studies, artefacts, algorithms and data sets. Files are read; no part is imported."""

import ast
import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from fedrepro.commands import command
from fedrepro.commands.command import Command
from fedrepro.core import parts
from fedrepro.core.experiment import expanded_in
from fedrepro.core.study import load_studies
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import read_yaml


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


def studies() -> Iterator[tuple[str, str]]:
    for study in load_studies(command.CONFIG).values():
        experiments = expanded_in(study)
        declared = study.file("claims.yaml")
        found = load_claims(declared, checked=False).claims if declared else {}
        origins = Counter(claim.spec["origin"] for claim in found.values())
        claims = f"{origins['paper']} claims, {origins['printed']} on printed numbers, {origins['added']} added"
        yield study.name, f"{len(experiments)} experiments, {claims}: {study.paper}"


def artefacts() -> Iterator[tuple[str, str]]:
    for study in load_studies(command.CONFIG).values():
        declared = study.file("artefacts.yaml")
        for name, spec in read_yaml(declared).items() if declared else ():
            yield f"{study.name}/{name}", f"{spec['title']} ({spec['source']})"


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
