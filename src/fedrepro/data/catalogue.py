"""config/datasets.yaml: which real files a data set has, where they come from, and whether those here are they.

A data set has one or more layouts (the complete files, another format of them, a sample), in order of preference;
the first whose files are all there is used, once their checksums hold. A file that is there and is not what it
should be is an error, never a reason to fall back to the stand-in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.core.config import ROOT, read_yaml, validate
from fedrepro.errors import UserError, nearest

CATALOGUE = ROOT / "config" / "datasets.yaml"
Entries = Mapping[str, Mapping[str, Any]]  # data set → its declaration, as the schema has it


@dataclass(frozen=True)
class Found:
    """Verified real files: name in the layout → path, and name → `md5:…` or `sha256:…`."""

    name: str
    layout: str
    complete: bool
    paths: Mapping[str, Path]
    checksums: Mapping[str, str]

    def __getitem__(self, file_name: str) -> Path:
        """The path of a file, by the last part of its name."""
        return next(path for name, path in self.paths.items() if name.endswith(file_name))

    def about(self) -> dict[str, Any]:
        """What a manifest says of them."""
        return {"name": self.name, "layout": self.layout, "complete": self.complete, "files": dict(self.checksums)}


@cache
def catalogue(path: Path = CATALOGUE) -> Entries:
    entries = read_yaml(path)
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
    """The first layout all of whose files are in one of the folders, with their paths. Nothing is read."""
    for layout, spec in entry(name, entries)["layouts"].items():
        for folder in folders:
            paths = {file["path"]: folder / file["path"] for file in spec["files"]}
            if all(path.is_file() for path in paths.values()):
                return layout, paths
    return None


def find(name: str, mode: str, folders: Sequence[Path], entries: Entries | None = None) -> Found | None:
    """The verified files; None in mode `standin`, or in mode `auto` where there are none."""
    if mode == "standin":
        return None
    here = present(name, folders, entries)
    if here is None:
        if mode == "real":
            raise UserError(missing(name, folders, entries))
        return None
    layout, paths = here
    spec = entry(name, entries)["layouts"][layout]
    checksums = {file["path"]: verify(paths[file["path"]], file) for file in spec["files"]}
    return Found(name, layout, spec.get("complete", True), paths, checksums)


def verify(path: Path, spec: Mapping[str, Any]) -> str:
    """The file's checksum, as `md5:…` or `sha256:…`, if the file is the one in its declaration; else a UserError.

    A file whose publisher gives no checksum is only described by the sha256 it has; its reader checks its content.
    """
    checksum, wrong = compare(path, spec)
    if wrong:
        raise UserError(f"{path}: {wrong}. Remove it and run `make data`, or set data=standin")
    return checksum


def compare(path: Path, spec: Mapping[str, Any]) -> tuple[str, str]:
    """The file's checksum, and how it differs from its declaration: the empty text where it does not."""
    kind = next((k for k in ("sha256", "md5") if k in spec), "sha256")
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    size, expected = path.stat().st_size, spec.get("bytes")
    wrong = [f"{kind} is {found}, not {spec[kind]}"] if found != spec.get(kind, found) else []
    if expected is not None and size != expected:
        wrong.append(f"{size} bytes, not {expected}{': cut off?' if size < expected else ''}")
    return f"{kind}:{found}", ", ".join(wrong)


def missing(name: str, folders: Sequence[Path], entries: Entries | None = None, tried: str = "") -> str:
    """One line: which files are not there, where they were looked for, what was tried, how to get them."""
    spec = entry(name, entries)
    files = next(iter(spec["layouts"].values()))["files"]
    lacking = [file["path"] for file in files if not any((folder / file["path"]).is_file() for folder in folders)]
    shown = ", ".join(lacking[:4]) + (", …" if len(lacking) > 4 else "")
    looked = " or ".join(str(folder) for folder in folders) or "nowhere: DATA_DIR is not set"
    tried = f" Tried: {tried}." if tried else ""
    return f"data: real, but {spec['title']} is not here: {shown} not in {looked}.{tried} {how_to_get(name, spec)}"


def how_to_get(name: str, spec: Mapping[str, Any]) -> str:
    """What a user can do where files are missing."""
    return spec.get("manual") or f"`make data ONLY={name}` fetches it where its address can be reached"
