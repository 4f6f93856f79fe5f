"""`fedrepro check FOLDER`: whether a study of your own holds what the package's studies hold, before it is run.

Its files against the schemas, the code and each other, at every scale; its types, if mypy is installed; its methods,
models, data sets and partitions against the contracts (`fedrepro.contracts`). The code in the folder is run.
"""

import importlib.util
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from fedrepro.commands.command import CONFIG, Command
from fedrepro.core import outside, parts
from fedrepro.core.experiment import SCALES, experiments_of, load_artefacts
from fedrepro.core.study import Study, study_of
from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.contracts.contract import Contract


def check(given: Namespace) -> Iterator[str]:
    parts.add_studies([given.folder])
    asked = given.folder.resolve()
    for study in [study_of(CONFIG, name) for name, at in outside.known().items() if asked in (at, at.parent)]:
        yield from files_hold(study)
        broken = 0
        for lines in (types_hold(study), contracts_hold(study)):
            for holds, line in lines:
                broken += not holds
                yield line
        if broken:
            raise UserError(f"{study.name}: {broken} of the checks above failed")
        yield f"{study.name}: all hold"


def files_hold(study: Study) -> Iterator[str]:
    """Raise the first error in the study's files; else say what there is."""
    from fedrepro.evidence.assumptions import listed_errata
    from fedrepro.evidence.claim_files import load_claims
    from fedrepro.workflow.checks import check_all
    from fedrepro.workflow.claim_checks import check_claims

    for scale in SCALES:
        check_all((experiments := experiments_of(study, scale)).values())
    artefacts = [a for a in load_artefacts(CONFIG, experiments, [study]) if parts.artefact_module(*a.split("/"))]
    claims = load_claims(path) if (path := study.file("claims.yaml")) else None
    if claims and path:
        check_claims(claims, study, experiments, path)
    errata = listed_errata(study.folder / "errata.yaml")
    counts = {"experiments": len(experiments), "claims": len(claims.claims) if claims else 0}
    counts |= {"headlines": len(study.headlines), "artefacts": len(artefacts), "errata": len(errata)}
    yield f"files: {', '.join(f'{count} {name}' for name, count in counts.items())}"


def types_hold(study: Study) -> Iterator[tuple[bool, str]]:
    """Whether mypy finds no error, with a line of text."""
    from fedrepro.data.catalogue import cache_folder

    if importlib.util.find_spec("mypy") is None:
        yield True, "types: not checked, mypy is not installed"
        return
    options = ("--ignore-missing-imports", "--check-untyped-defs", "--no-error-summary", "--explicit-package-bases")
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={cache_folder() / 'mypy'}", study.folder.name]
    done = subprocess.run(command, cwd=study.folder.parent, capture_output=True, text=True)
    yield from ((False, f"types: {line}") for line in (done.stdout + done.stderr).splitlines())
    if not done.returncode:
        yield True, "types: hold"


def contracts_hold(study: Study) -> Iterator[tuple[bool, str]]:
    """Whether the contracts of each of the study's own parts hold, with a line of text."""
    from fedrepro.contracts import data, methods, models

    alone: dict[str, Callable[[str], Iterator[Contract]]] = {
        "algorithms": methods.contracts,
        "models": models.contracts,
        "datasets": data.dataset_contracts,
        "partitions": data.partition_contracts,
    }
    prefix = f"{outside.PACKAGE}.{study.name}."
    own = {kind: [n for n, module in parts.modules(kind).items() if module.startswith(prefix)] for kind in alone}
    for kind, contracts in alone.items():
        for name in own[kind]:
            yield from _held(f"{kind[:-1]} {name}", contracts(name))
    usable = {kind: parts.usable_by(study.name, kind) for kind in ("datasets", "partitions")}
    pairs = {*product(own["datasets"], usable["partitions"]), *product(usable["datasets"], own["partitions"])}
    for dataset, partition in sorted(pairs):
        yield from _held(f"{dataset} by {partition}", data.pair_contracts(dataset, partition))


def _held(what: str, contracts: Iterable["Contract"]) -> Iterator[tuple[bool, str]]:
    count = 0
    for contract in contracts:
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                contract.check(Path(folder))
            except Exception as error:  # whatever the study's code raises breaks the contract
                found = " ".join(str(error).split()) or type(error).__name__
                yield False, f"{what}: broken: {contract.says}: {found[:300]}"
    yield True, f"{what}: {count} contracts tried"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="a study's folder, or one that holds studies")


COMMAND = Command(help="check a study of your own: files, types, contracts", arguments=arguments, run=check)
