"""Printed numbers: those of a study's published.csv, with spread and runs where these are printed."""

import math
from dataclasses import dataclass

import pandas as pd

from fedrepro.evidence.quantities import Untested, near


@dataclass(frozen=True)
class Stated:
    """A printed number; NaN for a spread or a number of runs that is not printed."""

    value: float
    spread: float = math.nan
    runs: float = math.nan

    @property
    def se(self) -> float:
        """spread/√runs; NaN where either is not printed, or for one run."""
        return self.spread / math.sqrt(self.runs) if self.runs > 1 else math.nan

    def __str__(self) -> str:
        words = f"{self.value:.6g}" + (f" ± {self.spread:.4g}" if math.isfinite(self.spread) else "")
        return words + (f" ({self.runs:.0f} runs)" if self.runs > 1 and math.isfinite(self.spread) else "")


class Printed(dict[str, list[Stated]]):
    """Published numbers by id, from published.csv."""

    def __init__(self, study: str, table: pd.DataFrame | None):
        super().__init__()
        self.place = f"config/studies/{study}/published.csv"
        wanted = ["value", "spread", "runs"]
        if table is not None:
            numbers = table.reindex(columns=wanted).apply(pd.to_numeric, errors="coerce")
            for name, *row in zip(table["id"], *(numbers[column] for column in wanted), strict=True):
                self.setdefault(name, []).append(Stated(*map(float, row)))

    def number(self, ref: float | str) -> Stated:
        """A number, or the published one with the id `ref`."""
        if not isinstance(ref, str):
            found = Stated(float(ref))
        else:
            rows = self.get(ref, [])
            if len(rows) != 1:
                words, hint = ("stands more than once", "") if rows else ("is not", near(ref, self))
                raise Untested(f"the id '{ref}' {words} in {self.place}{hint}")
            found = rows[0]
        if not math.isfinite(found.value):
            raise Untested(f"the published number '{ref}' has no value")
        return found
