"""Single files out of zip and tar archives, by name and never by `extractall`.

A member is written only where its caller says, so nothing lands elsewhere, whatever the archive claims; a member that
points outside, a link or a device is refused all the same, as is one that unpacks to more than it should.
"""

from __future__ import annotations

import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from fedrepro.errors import UserError

LIMIT = 8 << 30  # bytes of a member (or a download) whose size is not declared: more than any data set here has
_CHUNK = 1 << 18
# What the readers raise on a broken archive; RuntimeError is zipfile's word for a password, or an unknown packing.
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


def extract(archive: Path, targets: Mapping[str, tuple[Path, int | None]]) -> None:
    """Write members to files: name → (path, bytes it may have at most). `inner.zip//name` is in an archive inside.

    Raises a UserError that names the archive and the member; the file of that member is then removed.
    """
    inside: dict[str, dict[str, tuple[Path, int | None]]] = {}
    for member, target in targets.items():
        outer, _, inner = member.partition("//")
        inside.setdefault(outer, {})[inner] = target
    try:
        for name, member in _members(archive, inside):
            what = f"{archive.name}: member '{name}'"
            nested = {inner: target for inner, target in inside[name].items() if inner}
            if not nested:
                path, limit = inside[name][""]
                _write(member, path, limit or LIMIT, what)
                continue
            with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".inner-") as folder:
                copy = Path(folder) / PurePosixPath(name).name
                _write(member, copy, LIMIT, what)
                extract(copy, nested)
    except _BROKEN as error:
        raise UserError(f"{archive.name}: not an archive that can be read, or cut off: {error}") from None


def _members(archive: Path, names: Iterable[str]) -> Iterator[tuple[str, BinaryIO]]:
    """Each of the named members, open for reading, in one pass over the archive."""
    wanted = set(names)
    for name in sorted(wanted):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise UserError(f"{archive.name}: member '{name}' points outside its folder: refused")
    for name, member in (_zip if _is_zip(archive) else _tar)(archive, wanted.copy()):
        wanted.discard(name)
        yield name, member
        if not wanted:
            return
    if wanted:
        raise UserError(f"{archive.name}: has no member '{min(wanted)}'")


def _is_zip(archive: Path) -> bool:
    with open(archive, "rb") as file:
        return file.read(4) == b"PK\x03\x04"  # not `is_zipfile`: a tar that ends in a zip would pass for one


def _zip(archive: Path, wanted: set[str]) -> Iterator[tuple[str, BinaryIO]]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.filename in wanted:
                kind = stat.S_IFMT(info.external_attr >> 16)
                _ordinary(archive, info.filename, not info.is_dir() and kind in (0, stat.S_IFREG))
                with opened.open(info) as member:
                    yield info.filename, member


def _tar(archive: Path, wanted: set[str]) -> Iterator[tuple[str, BinaryIO]]:
    with tarfile.open(archive, "r|*") as opened:  # a stream: a compressed tar is unpacked once
        for info in opened:
            name = info.name.removeprefix("./")
            if name in wanted:
                _ordinary(archive, name, info.isreg())
                yield name, opened.extractfile(info)


def _ordinary(archive: Path, name: str, is_file: bool) -> None:
    if not is_file:
        raise UserError(f"{archive.name}: member '{name}' is a link, a device or a folder, not a file: refused")


def _write(member: BinaryIO, path: Path, limit: int, what: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "wb") as file:
            written = 0
            while chunk := member.read(_CHUNK):
                written += len(chunk)
                if written > limit:
                    raise UserError(f"{what} unpacks to more than {limit} bytes: refused")
                file.write(chunk)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
