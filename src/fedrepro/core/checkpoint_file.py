"""The file of a checkpoint: SHA-256 of the rest, a header (one line of JSON), then the payload.

The header says whose checkpoint it is, how far the run has come and how it was run. It can be read without torch.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

_DIGEST = hashlib.sha256().digest_size


class DamagedCheckpoint(ValueError):
    """The file is not as it was written."""


def pack(header: dict[str, Any], body: bytes) -> bytes:
    """The content of a file."""
    rest = json.dumps(header, sort_keys=True).encode() + b"\n" + body
    return hashlib.sha256(rest).digest() + rest


def unpack(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """(header, payload) of a file's content."""
    digest, rest = raw[:_DIGEST], raw[_DIGEST:]
    if hashlib.sha256(rest).digest() != digest:
        raise DamagedCheckpoint("is damaged")
    line, _, body = rest.partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise DamagedCheckpoint("has no header")
    return header, body


def read_header(path: Path) -> dict[str, Any]:
    """The header of a file, whose payload is checked, but not loaded."""
    return unpack(path.read_bytes())[0]
