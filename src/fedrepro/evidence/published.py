"""What the papers print: config/published/<study>.csv, the one place that has these numbers."""

from __future__ import annotations

import functools
from typing import NamedTuple

import pandas as pd

from fedrepro.core.config import ROOT


class Printed(NamedTuple):
    """A number of a table, and its spread over runs (not a number where none is printed)."""

    value: float
    spread: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.spread:.3f}"


@functools.cache
def printed(study: str) -> dict[str, Printed]:
    """Id → number, of all that the study's file has."""
    table = pd.read_csv(ROOT / "config" / "published" / f"{study}.csv")
    return {row.id: Printed(row.value, row.spread) for row in table.itertuples()}
