"""Numbers that the papers print: config/studies/<study>/published.csv."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Printed(NamedTuple):
    """A printed number and its spread over runs (NaN where none is printed)."""

    value: float
    spread: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.spread:.3f}"


def read_printed(path: Path) -> dict[str, Printed]:
    """Id → number, for every row of a study's file."""
    table = pd.read_csv(path)
    return {row.id: Printed(row.value, row.spread) for row in table.itertuples()}
