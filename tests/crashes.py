"""Runs that are cut off after a checkpoint, and what must be the same after they are resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from fedrepro.contracts.crashes import Crash, CrashingAt, Fragile
from fedrepro.core.checkpoint import Checkpoint
from tests.builders import Run

__all__ = ["Crash", "CrashingAt", "Fragile", "assert_resumes"]


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
