"""The tidy log of a run: one row per number."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

#: column → dtype of runs/…/<shard>.parquet; `client` −1 and `group` "" mean "none"
COLUMNS = dict.fromkeys(("experiment", "algorithm", "setting"), "str")
COLUMNS |= dict.fromkeys(("seed", "round", "step", "client"), "int64")
COLUMNS |= dict.fromkeys(("group", "split", "metric"), "str") | {"value": "float64"}
_LOGGED = ("setting", "seed", *list(COLUMNS)[4:])
MIN_POINTS = 5  # fewer give no spread of third differences


class MetricLog:
    """Rows of one job, kept as columns: plain lists, which a checkpoint can hold."""

    def __init__(self, columns: dict[str, list[Any]] | None = None) -> None:
        self.columns = columns or {name: [] for name in _LOGGED}

    def add(
        self,
        run: tuple[str, int],
        round: int,
        metric: str,
        value: float,
        *,
        split: str = "",
        client: int = -1,
        group: str = "",
        step: int = 0,
    ) -> None:
        """One number of the run (setting, seed)."""
        row = (*run, round, step, client, group, split, metric, float(value))
        for name, item in zip(_LOGGED, row, strict=True):
            self.columns[name].append(item)

    def frame(self, experiment: str, algorithm: str) -> pd.DataFrame:
        """All rows in the order of their logging, with the columns of `COLUMNS`."""
        frame = pd.DataFrame(self.columns)
        frame.insert(0, "algorithm", algorithm)
        frame.insert(0, "experiment", experiment)
        return frame[list(COLUMNS)].astype(COLUMNS)

    def __len__(self) -> int:
        return len(self.columns["value"])


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's ρ of two vectors of one length; 0 if either is constant."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    from scipy.stats import spearmanr  # here: the import takes a second

    return float(spearmanr(x, y).statistic)


def roughness(values: np.ndarray) -> float:
    """Deviation of the third differences over √20; NaN for fewer than MIN_POINTS values. Third differences remove any
    quadratic trend; for independent noise of deviation s theirs is √20·s, so the roughness is s."""
    if len(values) < MIN_POINTS:
        return math.nan
    return float(np.sqrt(np.mean(np.diff(values, n=3) ** 2) / 20))
