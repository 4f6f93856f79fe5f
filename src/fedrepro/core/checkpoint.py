"""Round checkpoints: a job that is killed at any moment resumes and ends with the same bytes.

A checkpoint is one file, named by the hash of the job's config and code: a SHA-256, then the payload (tensors, numbers,
strings, lists and dicts only, read with `weights_only`). It is written atomically; a damaged one is ignored with a
message.
"""

import hashlib
import io
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fedrepro.core.params import Params
from fedrepro.files import write_atomically

_PARAMS = "__params__"


class Checkpoint:
    """Is due every `seconds` seconds."""

    def __init__(self, path: Path, seconds: float = 10.0, say: Callable[[str], None] = lambda text: None):
        self.path, self.seconds, self.say = Path(path), seconds, say
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
        """The payload; None if there is no checkpoint or it is damaged."""
        if not self.path.exists():
            return None
        raw = self.path.read_bytes()
        if hashlib.sha256(body := raw[32:]).digest() != raw[:32]:
            why = "is damaged"
        else:
            try:
                payload: dict[str, Any] = _decode(torch.load(io.BytesIO(body), weights_only=True))
                return payload
            except pickle.UnpicklingError:
                why = "holds more than numbers, text and tensors"
        self.say(f"checkpoint {self.path.name} {why}: ignored, starting from round 0")
        return None

    def remove(self) -> None:
        """Also the unfinished file of a killed job."""
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
        return Params(tree[_PARAMS]) if _PARAMS in tree else {k: _decode(v) for k, v in tree.items()}
    return [_decode(v) for v in tree] if isinstance(tree, list) else tree
