"""One file by HTTP: resumed, verified, and under its own name only when complete and correct.

A download goes to `<name>.part`. A later run resumes it, provided a checksum can tell whether the halves fit. A part
that breaks off is kept, a wrong one is removed.
"""

import errno
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fedrepro.data.archive import LIMIT
from fedrepro.data.catalogue import compare

TIMEOUT = 30.0  # seconds without a byte until a server counts as stalled
_TRIES = 2  # per address
_CHUNK = 1 << 18
_NETWORK = (OSError, http.client.HTTPException)  # a timeout and urllib's own errors are OSErrors


class Trouble(Exception):
    """A failed download, in one line. again: a second try at the same address may help."""

    def __init__(self, text: str, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


def get(spec: Mapping[str, Any], path: Path, timeout: float, say: Callable[[str], None]) -> None:
    """Download `path` from the first of its addresses that serves the declared file.

    Trouble where none does; OSError where the file cannot be written.
    """
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
    """The path of an incomplete download."""
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
        with (
            open(waiting, "ab" if done else "wb") as file,
            tqdm(total=total, initial=done, unit="B", unit_scale=True, leave=False, disable=None) as bar,
        ):
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
    headers = {"User-Agent": "fedrepro", **({"Range": f"bytes={start}-"} if start else {})}
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
    while left is None or left > 0:
        try:
            chunk = answer.read1(_CHUNK)
        except _NETWORK as error:
            raise Trouble(f"{url}: broke off: {error or type(error).__name__}", again=True) from None
        if not chunk:
            return
        yield chunk
        left = None if left is None else left - len(chunk)
