"""Checksums of result files: written when a job ends, compared whenever a file is read.

The files of one stem (`0-1.parquet`, `0-1.json`) share a seal, `0-1.sha256`, in the format of `sha256sum`. A folder
that is made at once has one listing, SHA256SUMS. Files with neither, of older versions, are taken as they are.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fedrepro.errors import Damaged
from fedrepro.files import sha256, write_atomically

SEAL = ".sha256"
LISTING = "SHA256SUMS"
UNSEALED = ("logs", "benchmarks", "checkpoints", "damaged")  # folders of a results folder without seals
PASSING = ("failures.json", "plan.json")  # files likewise


def seal(paths: Iterable[Path | str]) -> None:
    """Record the checksums of files; all files of a stem are sealed together."""
    groups: dict[Path, list[Path]] = defaultdict(list)
    for path in map(Path, paths):
        groups[path.with_suffix(SEAL)].append(path)
    for target, files in groups.items():
        write_atomically(target, _written({path.name: sha256(path) for path in files}))


def unseal(paths: Iterable[Path | str]) -> None:
    """Delete the seals of files that are about to be written: a killed job leaves none rather than a wrong one."""
    for target in {Path(path).with_suffix(SEAL) for path in paths}:
        target.unlink(missing_ok=True)


def check(path: Path | str) -> Path:
    """The path; Damaged if the file is not as its seal says. A file without a seal passes."""
    path = Path(path)
    recorded = path.with_suffix(SEAL)
    if path == recorded or not recorded.exists():
        return path
    if _read(recorded).get(path.name) != sha256(path):
        raise Damaged(path)
    return path


def list_all(folder: Path) -> None:
    """Write the listing of all files of a folder."""
    found = {path.relative_to(folder).as_posix(): sha256(path) for path in _files(folder) if path.name != LISTING}
    write_atomically(folder / LISTING, _written(found))


def wrong(folder: Path) -> Iterator[tuple[Path, str]]:
    """(file, why) for every file of a results folder that is damaged, missing or without a checksum."""
    whole = (folder / LISTING).is_file()
    recorded = [folder / LISTING] if whole else [path for path in _files(folder) if path.suffix == SEAL]
    known: set[Path] = set()
    for record in recorded:
        try:
            listed = _read(record)
        except Damaged:
            yield record, "damaged"
            known |= set(record.parent.glob(f"{record.stem}.*"))
            continue
        for name, expected in listed.items():
            known.add(path := record.parent / name)
            if not path.is_file():
                yield path, "missing"
            elif sha256(path) != expected:
                yield path, "damaged"
    for path in _files(folder):
        if path not in known and path not in recorded:
            yield path, "no checksum"


def _files(folder: Path) -> list[Path]:
    """The files that have checksums, without hidden ones (those are being written)."""
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not (Path(at) == folder and name in UNSEALED)]
        found += [Path(at, name) for name in names if not name.startswith(".") and name not in PASSING]
    return sorted(found)


def _written(checksums: Mapping[str, str]) -> str:
    return "".join(f"{found}  {name}\n" for name, found in sorted(checksums.items()))


def _read(record: Path) -> dict[str, str]:
    """Name → checksum; Damaged if one line is not as `_written` writes it."""
    lines = record.read_bytes().decode(errors="replace").split("\n")
    found = [re.fullmatch(r"([0-9a-f]{64})  ([^\0]+)", line) for line in lines[:-1]]
    if not lines or lines[-1] or not found or None in found:
        raise Damaged(record, "it is no list of checksums")
    return {match[2]: match[1] for match in found if match}
