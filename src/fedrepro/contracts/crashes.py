"""Ways to cut off a run after a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedrepro.core.checkpoint import Checkpoint


class Crash(Exception):
    pass


class Fragile:
    """A progress line that raises Crash in a given round, after the checkpoint of that round."""

    def __init__(self, round: int | None):
        self.round = round

    def say(self, done: int, note: str = "") -> None:
        if done == self.round:
            raise Crash


class CrashingAt(Checkpoint):
    """A checkpoint that is saved once, when it is asked for the n-th time whether it is due, and then raises Crash."""

    def __init__(self, path: Path, n: int):
        super().__init__(path)
        self.left = n

    def due(self) -> bool:
        self.left -= 1
        return self.left == 0

    def save(self, payload: dict[str, Any]) -> None:
        super().save(payload)
        raise Crash
