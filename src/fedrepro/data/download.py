"""One file by HTTP: resumed, verified, and under its own name only when complete and correct; files out of archives.

A download goes to `<name>.part`. A later run resumes it, provided a checksum can tell whether the halves fit. A part
that breaks off is kept, a wrong one is removed.

Members of zip and tar archives are written one by one, never by `extractall`, and only to the path that the caller
gives, whatever the archive claims. Members that point outside, links, devices and members that unpack to more than
they should are refused.
"""

import errno
import http.client
import lzma
import os
import stat
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tqdm import tqdm

from fedrepro.data.catalogue import compare
from fedrepro.errors import UserError

LIMIT = 8 << 30  # bytes of a member or download of undeclared size: more than any data set here has
TIMEOUT = 30.0  # seconds without a byte until a server counts as stalled
_TRIES = 2  # per address
_CHUNK = 1 << 18
_NETWORK = (OSError, http.client.HTTPException)  # a timeout and urllib's own errors are OSErrors
# Raised on a broken archive; zipfile raises RuntimeError for a password or an unknown packing.
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


class Trouble(Exception):
    """A failed download, in one line. again: a second try at the same address may help."""

    def __init__(self, text: str, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


def get(spec: Mapping[str, Any], path: Path, timeout: float, say: Callable[[str], None]) -> None:
    """Download `path` from the first of its addresses that serves the declared file; Trouble where none does."""
    waiting, tried = part(path), []
    for url in [spec["url"]] if isinstance(spec["url"], str) else spec["url"]:
        for _ in range(_TRIES):
            try:
                _download(url, waiting, spec, timeout, say)
                return settle(waiting, path, spec, url)
            except Trouble as trouble:
                say(str(trouble))
                tried.append(str(trouble))
                if not trouble.again:
                    break
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    waiting.unlink(missing_ok=True)  # leave the disk as it was, rather than full
                raise OSError(error.errno, error.strerror, str(path)) from None
    raise Trouble("; ".join(dict.fromkeys(tried)))


def part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def settle(waiting: Path, path: Path, spec: Mapping[str, Any], origin: str) -> None:
    """Give a complete and correct file its name; remove a wrong one."""
    _, wrong = compare(waiting, spec)
    if wrong:
        waiting.unlink()
        raise Trouble(f"{origin}: {wrong}", again=True)
    with open(waiting, "rb") as file:
        os.fsync(file.fileno())
    os.replace(waiting, path)


def _download(url: str, waiting: Path, spec: Mapping[str, Any], timeout: float, say: Callable[[str], None]) -> None:
    """Append to the part the missing bytes of the file at `url`."""
    expected, verifiable = spec.get("bytes"), "md5" in spec or "sha256" in spec
    done = waiting.stat().st_size if verifiable and waiting.is_file() else 0
    if done and done == expected:
        return
    with _open(url, done, timeout) as answer:
        if answer.status != 206:  # the whole file, whatever range was requested
            done = 0
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {done}-"):
            waiting.unlink(missing_ok=True)
            raise Trouble(f"{url}: answers with another part of the file than requested", again=True)
        total = None if answer.length is None else done + answer.length
        if total is not None and (total > LIMIT or total != (expected or total)):
            waiting.unlink(missing_ok=True)
            raise Trouble(f"{url}: has {total} bytes, not {expected or f'at most {LIMIT}'}")
        if not verifiable and answer.headers.get_content_type() == "text/html":
            raise Trouble(f"{url}: answers with a web page, not with the file")
        total = expected if total is None else total
        size = f" ({total / 1e6:,.1f} MB)" if total else ""
        say(f"{url}{size}{f', from byte {done} on' if done else ''}")
        waiting.parent.mkdir(parents=True, exist_ok=True)
        progress = tqdm(total=total, initial=done, unit="B", unit_scale=True, leave=False, disable=None)
        with open(waiting, "ab" if done else "wb") as file, progress as bar:
            for chunk in _chunks(answer, url):
                file.write(chunk)
                bar.update(len(chunk))
                done += len(chunk)
                if done > (total or LIMIT):
                    break
    if done > (total or LIMIT):
        waiting.unlink()
        raise Trouble(f"{url}: sends more than {total or LIMIT} bytes")
    if total and done < total:
        raise Trouble(f"{url}: broke off after {done} of {total} bytes", again=True)


def _open(url: str, start: int, timeout: float) -> http.client.HTTPResponse:
    """The response to a request for the file from byte `start` on."""
    headers = {"User-Agent": "fedrepro"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and start:  # the part is longer than the file
            return _open(url, 0, timeout)
        raise Trouble(f"{url}: {error.code} {error.reason}") from None
    except _NETWORK as error:
        raise Trouble(f"{url}: cannot be reached: {getattr(error, 'reason', None) or error}") from None


def _chunks(answer: http.client.HTTPResponse, url: str) -> Iterator[bytes]:
    """The response's bytes, up to the announced length; Trouble where the connection fails."""
    left = answer.length
    try:
        while left != 0 and (chunk := answer.read1(_CHUNK)):
            yield chunk
            left = None if left is None else max(0, left - len(chunk))
    except _NETWORK as error:
        raise Trouble(f"{url}: broke off: {error or type(error).__name__}", again=True) from None


def extract(archive: Path, targets: Mapping[str, tuple[Path, int | None]]) -> None:
    """Write members to files: name → (path, most bytes). `inner.zip//name` lies in an archive inside.

    A UserError names the archive and the member; the caller removes the files written so far.
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
    written = 0
    with open(path, "wb") as file:
        while chunk := member.read(_CHUNK):
            written += len(chunk)
            if written > limit:
                raise UserError(f"{what} unpacks to more than {limit} bytes: refused")
            file.write(chunk)
