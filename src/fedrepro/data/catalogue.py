"""config/datasets.yaml: the real files of each data set; and how a data set is declared and made.

Of its layouts (the complete files, another format, a sample), in order of preference, the first whose files are all
present is used, once their checksums hold. A present but wrong file is an error: the stand-in does not replace it.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from fedrepro.data.dataset import Dataset, Found
from fedrepro.errors import UserError, nearest
from fedrepro.files import ROOT, read_yaml

CATALOGUE = ROOT / "config" / "datasets.yaml"
Entries = Mapping[str, Mapping[str, Any]]  # data set → its declaration, as in the schema


@cache
def catalogue() -> Entries:
    """The declarations of all data sets, as `fedrepro.data.fetch.check_catalogue` passes them."""
    return cast(Entries, read_yaml(CATALOGUE))


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
            if all(map(os.path.isfile, paths.values())):  # unlike Path.is_file, False in a folder that may not be read
                return layout, paths
    return None


def find(name: str, mode: str, folders: Sequence[Path], entries: Entries | None = None) -> Found | None:
    """The verified files; None in mode `standin`, and in mode `auto` where no layout is present."""
    here = None if mode == "standin" else present(name, folders, entries)
    if here is None and mode == "real":
        raise UserError(missing(name, folders, entries))
    if here is None:
        return None
    layout, paths = here
    spec = entry(name, entries)["layouts"][layout]
    checksums = {file["path"]: verify(paths[file["path"]], file) for file in spec["files"]}
    return Found(name, layout, spec.get("complete", True), paths, checksums)


def verify(path: Path, spec: Mapping[str, Any]) -> str:
    """The file's checksum, `md5:…` or, also without a declared one, `sha256:…`; UserError where the file differs."""
    checksum, wrong = compare(path, spec)
    if wrong:
        raise UserError(f"{path}: {wrong}. Remove it and run `make data`, or set data=standin")
    return checksum


def compare(path: Path, spec: Mapping[str, Any]) -> tuple[str, str]:
    """The file's checksum, and its difference from the declaration (empty: none)."""
    kind = "md5" if "md5" in spec and "sha256" not in spec else "sha256"
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
    return spec.get("manual") or f"`make data ONLY={name}` fetches it where its address can be reached"


Fetch = Callable[[str, Sequence[Path]], None]


@dataclass(frozen=True)
class Source:
    """A random stream, and the folders of real files (the first one that has them counts)."""

    rng: np.random.Generator
    mode: str = "auto"  # auto | real | standin
    folders: tuple[Path, ...] = ()
    fetch: Fetch | None = None  # downloads the files that mode `real` misses, given the data set's name and the folders

    def find(self, name: str) -> Found | None:
        """The verified real files of a data set of config/datasets.yaml; None: use the stand-in."""
        if self.mode == "real" and self.fetch is not None and present(name, self.folders) is None:
            self.fetch(name, self.folders)
        return find(name, self.mode, self.folders)


@dataclass(frozen=True)
class Entry:
    """The declaration of a data set, `DATASET` in its module."""

    load: Callable[..., Dataset]
    seeded: bool  # every seed has its own data
    size: Callable[..., tuple[int | None, int]]  # for the plan: clients (None: the partition makes them), train samples
    files: str | None = None  # its entry in config/datasets.yaml
    reads: tuple[str, ...] = ()  # other files that it reads: relative to the checkout, or absolute
    example: Mapping[str, Any] = field(default_factory=dict)  # small parameters for the contract tests


def cache_folder() -> Path:
    """What this machine keeps between runs: the data that `make data` fetched."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedrepro"
    except RuntimeError:
        raise UserError("the user has no home folder, in which fetched data is kept: set XDG_CACHE_HOME") from None


def data_folders(data_dir: str | None) -> list[str]:
    """Where real data may be: DATA_DIR, then what `make data` fetched. An error where DATA_DIR is not there."""
    if data_dir and not os.path.isdir(data_dir):  # unlike Path.is_dir, False for a name that is too long
        raise UserError(f"data_dir: folder '{data_dir}' does not exist")
    return [*([str(data_dir)] if data_dir else []), str(cache_folder() / "data")]
