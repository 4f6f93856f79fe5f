"""A tidy table cut for measuring: per algorithm, its rows as arrays, its runs, and where each metric's rows are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

TEXTS = ("setting", "group", "split", "metric", "data")
NUMBERS = ("seed", "round", "client", "value", "diverged")
#: columns of a tidy table that judging reads
COLUMNS = ["algorithm", *TEXTS, *NUMBERS]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Arm:
    """The rows of one algorithm. `columns`: arrays of one length, texts as codes of `names`; `run`: per row, the index
    of its run, whose setting, seed and flag `of_run` has; `metrics`: metric → its rows."""

    columns: Mapping[str, Array]
    names: Mapping[str, list[str]]
    run: Array
    of_run: Mapping[str, Array]
    metrics: Mapping[str, Array]
    data: frozenset[str]

    @property
    def settings(self) -> list[str]:
        return [self.names["setting"][code] for code in np.unique(self.of_run["setting"])]

    def runs_of(self, settings: Sequence[str]) -> Array:
        """Per run, whether its setting is one of these."""
        wanted = set(settings)
        return np.array([name in wanted for name in self.names["setting"]])[self.of_run["setting"]]

    def values(self, column: str, rows: Array) -> list[Any]:
        """The different values of a column in some rows, in order."""
        found = np.unique(self.columns[column][rows])
        return sorted(self.names[column][code] for code in found) if column in self.names else found.tolist()

    def equal(self, column: str, value: Any, rows: Array) -> Array:
        """Per row of these, whether its column has the value."""
        if column not in self.names:
            return np.asarray(self.columns[column][rows] == value)
        names = self.names[column]
        return np.asarray(self.columns[column][rows] == (names.index(value) if value in names else -1))

    def with_metric(self, metric: str, values: Array) -> "Arm":
        """This with a further metric: one value per run, of round 0 and no client, group or split."""
        n = len(values)
        added = {
            "setting": self.of_run["setting"],
            "seed": self.of_run["seed"],
            "value": values,
            "client": np.full(n, -1),
        }
        names = dict(self.names)
        for column in ("group", "split"):
            names[column] = names[column] if "" in names[column] else [*names[column], ""]
            added[column] = np.full(n, names[column].index(""))
        added["round"] = np.zeros(n, dtype=int)
        columns = {key: np.concatenate([self.columns[key], rows]) for key, rows in added.items()}
        rows = np.arange(len(self.run), len(self.run) + n)
        run = np.concatenate([self.run, np.arange(n)])
        return Arm(columns, names, run, self.of_run, {**self.metrics, metric: rows}, self.data)


def arms_of(table: pd.DataFrame) -> dict[str, Arm]:
    """Algorithm → its rows."""
    columns, names = {}, {}
    for text in ("algorithm", *TEXTS):
        columns[text], found = pd.factorize(table[text])
        names[text] = [str(name) for name in found]
    columns |= {number: table[number].to_numpy() for number in NUMBERS}
    order = np.argsort(columns["algorithm"], kind="stable")
    ends = np.searchsorted(columns["algorithm"][order], np.arange(1, len(names["algorithm"])))
    parts = zip(names["algorithm"], np.split(order, ends), strict=True)
    return {name: _arm({key: column[rows] for key, column in columns.items()}, names) for name, rows in parts}


def _arm(columns: dict[str, Array], names: Mapping[str, list[str]]) -> Arm:
    setting, seed = columns["setting"], columns["seed"]
    _, first, run = np.unique(setting * (seed.max() + 1) + seed, return_index=True, return_inverse=True)
    of_run = {"setting": setting[first], "seed": seed[first], "diverged": np.bincount(run, columns["diverged"]) > 0}
    order = np.argsort(columns["metric"], kind="stable")
    codes, starts = np.unique(columns["metric"][order], return_index=True)
    metrics = {names["metric"][c]: rows for c, rows in zip(codes, np.split(order, starts[1:]), strict=True)}
    data = frozenset(names["data"][code] for code in np.unique(columns["data"]))
    return Arm(columns, names, run, of_run, metrics, data)
