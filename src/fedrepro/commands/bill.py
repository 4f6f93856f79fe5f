"""`fedrepro bill` (`make sbom`): a bill of materials of envs/requirements.lock, as CycloneDX 1.5 JSON. Licences are
those that the installed packages declare; packages for another system or Python are listed without, and the bill says
how many packages could be looked up."""

import json
import re
from argparse import Namespace
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from fedrepro import __version__
from fedrepro.commands.command import Command
from fedrepro.files import ROOT

LOCK = ROOT / "envs" / "requirements.lock"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)\s*(?:;\s*(?P<marker>.*))?$")
HASH = re.compile(r"\s--hash=sha256:([0-9a-f]{64})")


def licence(name: str, version: str) -> str:
    """The installed package's SPDX expression, short text, classifiers or first line of its licence file; else ""."""
    package = next(iter(metadata.distributions(name=name)), None)
    if package is None or package.version.partition("+")[0] != version:  # 2.0+cpu is a build of 2.0
        return ""
    about = package.metadata.json
    text = str(about.get("license_expression") or about.get("license") or "").strip()
    if not text or len(text) > 100 or "\n" in text:  # some packages put their whole licence there
        classifiers = [c for c in about.get("classifier", []) if c.startswith("License ::")]
        text = "; ".join(c.rpartition(" :: ")[2] for c in classifiers)
    files = (file for file in package.files or [] if re.match(r"(LICEN[CS]E|COPYING)", file.name, re.IGNORECASE))
    if not text and (file := next(files, None)):
        text = next(filter(None, map(str.strip, file.read_text(encoding="utf-8").splitlines())), "")[:100]
    return text


def _entries(lock: Path) -> Iterator[str]:
    """The packages of the lock, each with its hashes on one line."""
    joined = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    return (line for line in joined.splitlines() if line.strip() and not line.startswith("#"))


def bill(lock: Path = LOCK) -> dict[str, Any]:
    """The bill of materials, one component per line of the lock."""
    components = []
    for entry in _entries(lock):
        line, hashes = HASH.sub("", entry).strip(), HASH.findall(entry)
        if (pin := PIN.match(line)) is None:
            raise ValueError(f"{lock.name}: '{line}' is no pinned version")
        name, version = pin["name"], pin["version"]
        component: dict[str, Any] = {"type": "library", "name": name, "version": version}
        component["purl"] = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
        if text := licence(name, version):
            component["licenses"] = [{"license": {"name": text}}]
        if hashes:
            component["hashes"] = [{"alg": "SHA-256", "content": value} for value in hashes]
        if pin["marker"]:
            component["properties"] = [{"name": "python:marker", "value": pin["marker"]}]
        components.append(component)
    found = sum("licenses" in component for component in components)
    told = {"name": "fedrepro:looked-up", "value": f"{found} of {len(components)} packages"}
    ours = {"component": {"type": "application", "name": "fedrepro", "version": __version__}, "properties": [told]}
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": ours}
    return {**head, "components": components}


def run(given: Namespace) -> Iterator[str]:
    yield json.dumps(bill(), indent=1)


COMMAND = Command(help="bill of materials of the lock, as CycloneDX JSON", run=run)
