"""Single files out of zip and tar archives, by name, never by `extractall`.

A member is written only to the path that the caller gives, whatever the archive claims. Members that point outside,
links, devices and members that unpack to more than they should are refused.
"""

import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from fedrepro.errors import UserError

LIMIT = 8 << 30  # bytes of a member or download of undeclared size: more than any data set here has
_CHUNK = 1 << 18
# Raised on a broken archive; zipfile raises RuntimeError for a password or an unknown packing.
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


def extract(archive: Path, targets: Mapping[str, tuple[Path, int | None]]) -> None:
    """Write members to files: name → (path, most bytes). `inner.zip//name` lies in an archive inside.

    Raises a UserError that names the archive and the member; the file of that member is then removed.
    """
    inside: dict[str, dict[str, tuple[Path, int | None]]] = {}
    for member, target in targets.items():
        outer, _, inner = member.partition("//")
        inside.setdefault(outer, {})[inner] = target
    try:
        for name, file in _members(archive, set(inside)):
            what = f"{archive.name}: member '{name}'"
            nested = {inner: target for inner, target in inside[name].items() if inner}
            if not nested:
                path, limit = inside[name][""]
                _write(file, path, limit or LIMIT, what)
                continue
            with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".inner-") as folder:
                copy = Path(folder) / PurePosixPath(name).name
                _write(file, copy, LIMIT, what)
                extract(copy, nested)
    except _BROKEN as error:
        raise UserError(f"{archive.name}: not an archive that can be read, or cut off: {error}") from None


def _members(archive: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    """The wanted members, open for reading, in one pass over the archive."""
    for name in sorted(wanted):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise UserError(f"{archive.name}: member '{name}' points outside its folder: refused")
    with open(archive, "rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"  # not `is_zipfile`: a tar that ends in a zip would pass for one
    lacking = set(wanted)
    for name, member in (_zip if is_zip else _tar)(archive, wanted):
        if member is None:
            raise UserError(f"{archive.name}: member '{name}' is a link, a device or a folder, not a file: refused")
        yield name, member
        lacking.discard(name)
        if not lacking:
            return
    if lacking:
        raise UserError(f"{archive.name}: has no member '{min(lacking)}'")


def _zip(archive: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Each wanted member; None in place of one that is not an ordinary file."""
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.filename in wanted:
                if info.is_dir() or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                    yield info.filename, None
                with opened.open(info) as member:
                    yield info.filename, member


def _tar(archive: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes] | None]]:
    with tarfile.open(archive, "r|*") as opened:  # a stream: a compressed tar is unpacked once
        for info in opened:
            if (name := info.name.removeprefix("./")) in wanted:
                yield name, opened.extractfile(info) if info.isreg() else None


def _write(member: IO[bytes], path: Path, limit: int, what: str) -> None:
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
