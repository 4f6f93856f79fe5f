"""config/datasets.yaml: the real files of each data set, their addresses and checksums.

A data set has one or more layouts (the complete files, another format, a sample), in order of preference. The first
layout whose files are all present is used, once their checksums hold. A present but wrong file is an error, never a
reason to fall back to the stand-in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.core.config import ROOT, read_yaml, validate
from fedrepro.data.dataset import Found
from fedrepro.errors import UserError, nearest

CATALOGUE = ROOT / "config" / "datasets.yaml"
Entries = Mapping[str, Mapping[str, Any]]  # data set → its declaration, as in the schema


@cache
def catalogue(path: Path = CATALOGUE) -> Entries:
    """The checked declarations of all data sets."""
    entries: Entries = read_yaml(path)
    validate(entries, "datasets", path)
    for name, spec in entries.items():
        for layout, declared in spec["layouts"].items():
            archives = declared.get("archives", {})
            for file in declared["files"]:
                if "archive" in file and file["archive"] not in archives:
                    where = f"{name}.layouts.{layout}: {file['path']}: archive '{file['archive']}'"
                    raise UserError(f"{path}: {where} is not under archives{nearest(file['archive'], archives)}")
    return entries


def entry(name: str, entries: Entries | None = None) -> Mapping[str, Any]:
    """A data set's declaration in config/datasets.yaml, or in `entries`."""
    entries = catalogue() if entries is None else entries
    if name not in entries:
        raise UserError(f"data set '{name}' is not in {CATALOGUE.name}{nearest(name, entries)}")
    return entries[name]


def present(name: str, folders: Sequence[Path], entries: Entries | None = None) -> tuple[str, dict[str, Path]] | None:
    """The first layout with all its files in one of the folders, and their paths. Nothing is read."""
    for layout, spec in entry(name, entries)["layouts"].items():
        for folder in folders:
            paths = {file["path"]: folder / file["path"] for file in spec["files"]}
            if all(path.is_file() for path in paths.values()):
                return layout, paths
    return None


def find(name: str, mode: str, folders: Sequence[Path], entries: Entries | None = None) -> Found | None:
    """The verified files; None in mode `standin`, and in mode `auto` where no layout is present."""
    here = None if mode == "standin" else present(name, folders, entries)
    if here is None:
        if mode == "real":
            raise UserError(missing(name, folders, entries))
        return None
    layout, paths = here
    spec = entry(name, entries)["layouts"][layout]
    checksums = {file["path"]: verify(paths[file["path"]], file) for file in spec["files"]}
    return Found(name, layout, spec.get("complete", True), paths, checksums)


def verify(path: Path, spec: Mapping[str, Any]) -> str:
    """The file's checksum, `md5:…` or `sha256:…`; UserError where the file differs from its declaration.

    A file without a published checksum is described by its sha256; its reader checks the content.
    """
    checksum, wrong = compare(path, spec)
    if wrong:
        raise UserError(f"{path}: {wrong}. Remove it and run `make data`, or set data=standin")
    return checksum


def compare(path: Path, spec: Mapping[str, Any]) -> tuple[str, str]:
    """The file's checksum, and its difference from the declaration (empty: none)."""
    kind = next((k for k in ("sha256", "md5") if k in spec), "sha256")
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    size, expected = path.stat().st_size, spec.get("bytes")
    wrong = [f"{kind} is {found}, not {spec[kind]}"] if found != spec.get(kind, found) else []
    if expected is not None and size != expected:
        wrong.append(f"{size} bytes, not {expected}{': cut off?' if size < expected else ''}")
    return f"{kind}:{found}", ", ".join(wrong)


def missing(name: str, folders: Sequence[Path], entries: Entries | None = None, tried: str = "") -> str:
    """One line: the missing files, the folders searched, the addresses tried, how to get the files."""
    spec = entry(name, entries)
    files = next(iter(spec["layouts"].values()))["files"]
    lacking = [file["path"] for file in files if not any((folder / file["path"]).is_file() for folder in folders)]
    shown = ", ".join(lacking[:4]) + (", …" if len(lacking) > 4 else "")
    looked = " or ".join(map(str, folders)) or "nowhere: DATA_DIR is not set"
    tried = f" Tried: {tried}." if tried else ""
    return f"data: real, but {spec['title']} is not here: {shown} not in {looked}.{tried} {how_to_get(name, spec)}"


def how_to_get(name: str, spec: Mapping[str, Any]) -> str:
    """Advice to the user where files are missing."""
    return spec.get("manual") or f"`make data ONLY={name}` fetches it where its address can be reached"
