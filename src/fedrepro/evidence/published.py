"""What the papers print: config/studies/<study>/published.csv, the one place that has these numbers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd


class Printed(NamedTuple):
    """A number of a table, and its spread over runs (not a number where none is printed)."""

    value: float
    spread: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.spread:.3f}"


def read_printed(path: Path) -> dict[str, Printed]:
    """Id → number, of all that a study's file has."""
    table = pd.read_csv(path)
    return {row.id: Printed(row.value, row.spread) for row in table.itertuples()}
