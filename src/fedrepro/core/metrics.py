"""The tidy log of a run: one row a number."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

#: column → dtype of runs/…/<shard>.parquet; `client` −1 and `group` "" mean "none"
COLUMNS = {
    "experiment": "str",
    "algorithm": "str",
    "setting": "str",
    "seed": "int64",
    "round": "int64",
    "step": "int64",
    "client": "int64",
    "group": "str",
    "split": "str",
    "metric": "str",
    "value": "float64",
}
_RUN = ("setting", "seed")
_ROW = ("round", "step", "client", "group", "split", "metric", "value")


class MetricLog:
    """Rows of one job, kept as columns; plain lists, so that a checkpoint can hold them."""

    def __init__(self, columns: dict[str, list[Any]] | None = None) -> None:
        self.columns = columns or {name: [] for name in (*_RUN, *_ROW)}

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
        for name, item in zip((*_RUN, *_ROW), row, strict=True):
            self.columns[name].append(item)

    def add_many(
        self,
        run: tuple[str, int],
        round: int,
        metric: str,
        values: Iterable[float],
        *,
        split: str,
        clients: Iterable[int],
    ) -> None:
        """One number per client."""
        for client, value in zip(clients, values, strict=True):
            self.add(run, round, metric, value, split=split, client=int(client))

    def frame(self, experiment: str, algorithm: str) -> pd.DataFrame:
        """All rows, in the order of (setting, seed) first seen, with the columns of `COLUMNS`."""
        frame = pd.DataFrame(self.columns)
        frame.insert(0, "algorithm", algorithm)
        frame.insert(0, "experiment", experiment)
        return frame[list(COLUMNS)].astype(COLUMNS)

    def __len__(self) -> int:
        return len(self.columns["value"])


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's ρ of two vectors of one length; 0 where either is constant: no trend."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    from scipy.stats import spearmanr  # here: importing it takes a second, and few claims are trends

    return float(spearmanr(x, y).statistic)
