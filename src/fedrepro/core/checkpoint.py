"""Round checkpoints: a job that is killed at any moment resumes and ends with the same bytes.

A checkpoint is one file, named by the hash of the job's config and code, holding a SHA-256 of its payload and
then the payload. It is written under a temporary name and renamed; one that does not verify is ignored, and
that is said. The payload is tensors, numbers, strings, lists and dicts only and is read with `weights_only`.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import time
from pathlib import Path
from typing import Any

import torch

from fedrepro.core.params import Params
from fedrepro.files import write_atomically

_PARAMS = "__params__"


class Checkpoint:
    """Save at most every `seconds` seconds, load what is there."""

    def __init__(self, path: Path, seconds: float = 10.0, say=lambda text: None):
        self.path = Path(path)
        self.seconds = seconds
        self.say = say
        self._last = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.seconds

    def save(self, payload: dict[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(_encode(payload), buffer)
        body = buffer.getvalue()
        write_atomically(self.path, hashlib.sha256(body).digest() + body)
        self._last = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """The payload, or None where there is none or it is damaged."""
        if not self.path.exists():
            return None
        raw = self.path.read_bytes()
        digest, body = raw[:32], raw[32:]
        if hashlib.sha256(body).digest() != digest:
            return self._ignore("is damaged")
        try:
            return _decode(torch.load(io.BytesIO(body), weights_only=True))
        except pickle.UnpicklingError:
            return self._ignore("holds more than numbers, text and tensors")

    def _ignore(self, why: str) -> None:
        self.say(f"checkpoint {self.path.name} {why}: ignored, starting from round 0")

    def remove(self) -> None:
        """The checkpoint, and what a job that was killed left half written."""
        for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*")):
            path.unlink(missing_ok=True)


def _encode(tree: Any) -> Any:
    if isinstance(tree, Params):
        return {_PARAMS: dict(tree)}
    if isinstance(tree, dict):
        return {k: _encode(v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return [_encode(v) for v in tree]
    return tree


def _decode(tree: Any) -> Any:
    if isinstance(tree, dict):
        if _PARAMS in tree:
            return Params(tree[_PARAMS])
        return {k: _decode(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_decode(v) for v in tree]
    return tree
