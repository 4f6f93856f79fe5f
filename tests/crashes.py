"""Runs that are cut off after a checkpoint, and what must be the same after they are resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedrepro.core.checkpoint import Checkpoint
from tests.builders import Run


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


def assert_resumes(path: Path, rounds: int, start: Callable[..., Run]) -> None:
    """Cut off after each round and resumed, the run ends with the same bytes. `start` takes the options of `train`."""
    undisturbed = start()
    for crash in range(1, rounds):
        with pytest.raises(Crash):
            start(checkpoint=Checkpoint(path, seconds=0), progress=Fragile(crash))
        resumed = start(checkpoint=Checkpoint(path, seconds=0), progress=Fragile(None))
        assert resumed.counts["resumed_from"] == crash
        assert resumed.counts["gradient_steps"] == undisturbed.counts["gradient_steps"]
        pd.testing.assert_frame_equal(resumed.frame, undisturbed.frame, check_exact=True)
        assert resumed.parquet() == undisturbed.parquet()
        assert [r.diverged for r in resumed.replicates] == [r.diverged for r in undisturbed.replicates]
        path.unlink()
