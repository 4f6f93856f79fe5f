"""Files: written whole or not at all, and known by their content."""

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
    """A file to write to under a temporary name in the same folder, renamed at the end: no reader ever sees a half
    file, and after an error there is none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_writable(folder: Path) -> None:
    """UserError where no file can be made in the folder (which is made, too)."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"{folder}: cannot be written to: {error.strerror or error}") from None


def write_atomically(path: Path, content: bytes | str) -> None:
    """All of the content, or nothing."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    return json.loads(Path(path).read_text())


def check_own(path: Path, found: str) -> None:
    """UserError where a file that the workflow made is not what the json beside it says, by its `sha256`."""
    about = Path(path).with_suffix(".json")
    if about.exists() and read_json(about)["sha256"] != found:
        raise damaged(path)


def damaged(path: Path) -> UserError:
    return UserError(f"{path}: damaged: its checksum is not the one in the json beside it. Delete it and run again")


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(value: Any) -> str:
    """Hash of a JSON-like value, independent of the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
