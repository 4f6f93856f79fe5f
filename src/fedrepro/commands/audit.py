"""`fedrepro audit FILE` (`make audit` writes the file): what pip-audit found, and of how many packages it found
anything. A package that could not be looked up is not a clean one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.commands.command import Command
from fedrepro.errors import UserError
from fedrepro.files import read_json


def summary(found: dict[str, Any]) -> Iterator[str]:
    """A line per known vulnerability, then the numbers; a UserError if one is known or no package was looked up."""
    packages = found["dependencies"]
    known = [package for package in packages if "skip_reason" not in package]
    wrong = [(package, entry) for package in known for entry in package["vulns"]]
    for package, entry in wrong:
        fixed = ", ".join(entry.get("fix_versions", [])) or "no version"
        yield f"{package['name']} {package['version']}: {entry['id']}, fixed in {fixed}"
    told = f"{len(known)} of {len(packages)} packages could be looked up, {len(wrong)} known vulnerabilities"
    if wrong or not known:
        raise UserError(told)
    yield told


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="pip-audit's output, as JSON")


def run(given: Namespace) -> Iterator[str]:
    yield from summary(read_json(given.file))


COMMAND = Command(help="known vulnerabilities of the lock's packages", arguments=arguments, run=run)
