"""Files: written completely or not at all, and identified by their content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fedrepro.errors import UserError


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to under a temporary name in the same folder, renamed at the end: no reader sees an incomplete
    file, and an error leaves none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.umask(mask := os.umask(0))  # the umask can be read only by setting it
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_writable(folder: Path) -> None:
    """Create the folder; UserError if it is not writable."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: cannot be written to: {error.strerror or error}") from None


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write all of the content, or nothing."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    """Write a value as json with sorted keys."""
    write_atomically(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """The value in a json file."""
    return json.loads(Path(path).read_text())


def check_own(path: Path, found: str) -> None:
    """UserError if the checksum of one of the workflow's files is not the `sha256` in its json file."""
    about = Path(path).with_suffix(".json")
    if about.exists() and read_json(about)["sha256"] != found:
        raise damaged(path)


def damaged(path: Path) -> UserError:
    """The error for a file with another checksum than its json file."""
    return UserError(f"{path}: damaged: its checksum is not the one in its json file. Delete it and run again")


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(value: Any) -> str:
    """Hash of a JSON-like value, independent of the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
