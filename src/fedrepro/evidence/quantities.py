"""Quantities of a claim: one number per seed from a tidy table, or a published number; and their wording.

A quantity selects rows and reduces them to one number per seed (`std` divides by n). Its `setting` holds the pairs
that a run's setting must contain. Rows are never mixed by accident: where several settings or splits match, or both
single clients (groups) and overall rows, the claim must choose. `all` takes every setting, or every single client or
group; `max` and `min` cover all settings by default, as worst cases. `seconds` is a run's time, from the manifests.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.metrics import rank_correlation
from fedrepro.errors import nearest

RUN = ["setting", "seed"]
NONE = {"group": "", "client": -1}
# The clients are the whole population, hence ddof 0.
REDUCE: dict[str, Any] = {n: n for n in ("mean", "median", "max", "min")} | {"std": lambda x: x.std(ddof=0)}
MIN_TREND_POINTS = 3
Quantity = dict[str, Any]


class Untested(Exception):
    """The claim cannot be decided; the text gives the reason."""


@dataclass(frozen=True)
class Measured:
    """Finite `values` by seed. A run is a setting and a seed; `absent` seeds have a sound run but no value."""

    values: pd.Series
    seeds: int
    runs: int
    diverged: int
    absent: int
    data: frozenset[str]

    def losses(self, of: str = "") -> str:
        """Text on what is left out, to append to a reason; `of` names the method."""
        words = f"; {self.diverged} of {self.runs} runs{of} diverged" if self.diverged else ""
        return words + f"; {self.absent} of {self.seeds} seeds{of} without a value" * bool(self.absent)


def measure(tables: Mapping[str, pd.DataFrame], study: str, quantity: Quantity) -> Measured:
    """One number per seed: its reduced rows or, with `along`, their rank correlation with that setting or round."""
    key, along = f"{study}/{quantity['experiment']}", quantity.get("along")
    if key not in tables:
        raise Untested(f"there is no table {key}{near(key, tables)}")
    rows = _keep(tables[key], "algorithm", quantity["algorithm"], key)
    any_setting = quantity.get("setting") == "all" or quantity.get("reduce") in ("max", "min")
    if quantity.get("setting", "all") != "all":
        rows = _keep_setting(rows, quantity["setting"], key)
    if along:
        rows = rows.assign(along=rows["round"] if along == "round" else _positions(rows, along, key))
    settings = (setting.split(",") for setting in rows["setting"].unique())
    others = {tuple(pair for pair in pairs if pair.partition("=")[0] != along) for pairs in settings}
    if not any_setting and len(others) > 1:
        raise Untested(f"the claim must say which setting: {key} has {_listed(rows['setting'])}")
    rows = rows.assign(diverged=rows.groupby(RUN, observed=True)["diverged"].transform("any"))
    flagged = rows.groupby(RUN, observed=True)["diverged"].any()
    runs, seeds, data = len(flagged), rows["seed"].nunique(), frozenset(rows["data"].unique())
    if flagged.all():
        return Measured(pd.Series(dtype=float), seeds, runs, runs, 0, data)

    rows = _keep(rows, "metric", quantity["metric"], key)
    for column in ("split", "group", "client"):
        # Splits are never averaged; clients and groups may be, but not mixed with the overall rows.
        alike = NONE.get(column, rows[column].iloc[0])
        if column in quantity:
            rows = _keep(rows, column, quantity[column], key)
        elif (rows[column] == alike).nunique() > 1:
            raise Untested(f"the claim must say which {column}: {key} has {_listed(rows[column])}")
    if along != "round":
        rows = _keep_round(rows, quantity.get("round", "last"), key)
    rows = rows.assign(diverged=rows["diverged"] | ~np.isfinite(rows["value"]))
    bad = rows.groupby(RUN, observed=True)["diverged"]
    diverged = {*flagged.index[flagged], *bad.any().loc[lambda any_bad: any_bad].index}
    sound = {seed for _, seed in set(flagged.index) - diverged}
    rows = rows[~bad.transform("any")]

    reduce = REDUCE[quantity.get("reduce", "mean")]
    if along:
        points = rows.groupby(["seed", "along"])["value"].agg(reduce).reset_index("along")
        curves = {seed: own for seed, own in points.groupby("seed") if len(own) >= MIN_TREND_POINTS}
        if not curves and not diverged:
            raise Untested(f"a trend needs {MIN_TREND_POINTS} values of '{along}', {key} has fewer")
        values = pd.Series({s: rank_correlation(own["along"], own["value"]) for s, own in curves.items()}, dtype=float)
    else:
        values = rows.groupby("seed")["value"].agg(reduce)
    return Measured(values, seeds, runs, len(diverged), len(sound - set(values.index)), data)


def with_seconds(table: pd.DataFrame, manifests: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table with `seconds` of every run, from the manifests: the time of its job, divided evenly among its runs."""
    found = []
    for manifest in manifests:
        own = table[(table["algorithm"] == manifest["algorithm"]) & table["seed"].isin(manifest["seeds"])]
        runs = own.drop_duplicates(RUN)
        each = manifest["seconds"] / max(1, len(runs))
        found.append(runs.assign(metric="seconds", split="", group="", client=-1, step=0, value=each))
    return pd.concat([table, *found], ignore_index=True)


def near(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean …?` where a candidate is close, else nothing: a list would be too long for a reason."""
    hint = nearest(name, candidates)
    return hint if hint.startswith("; did you mean") else ""


def _listed(column: pd.Series) -> str:
    """The first few values of a column."""
    values = [f"'{value}'" for value in sorted(column.unique())]
    return ", ".join(values[:4]) + ", …" * (len(values) > 4)


def _keep(rows: pd.DataFrame, column: str, wanted: object, key: str) -> pd.DataFrame:
    """The rows whose column is `wanted` (`all`: any single client or group)."""
    every = column in NONE and wanted == "all"
    kept = rows[rows[column] != NONE[column]] if every else rows[rows[column] == wanted]
    if kept.empty:
        raise Untested(f"{column} '{wanted}' is not in {key}{near(wanted, rows[column].unique())}")
    return kept


def _keep_setting(rows: pd.DataFrame, wanted: str, key: str) -> pd.DataFrame:
    """The rows of the setting `wanted`, else of all settings that contain its pairs."""
    settings, pairs = rows["setting"].unique(), set(wanted.split(","))
    fitting = [s for s in settings if s == wanted] or [s for s in settings if pairs <= set(s.split(","))]
    if not fitting:
        raise Untested(f"setting '{wanted}' is not in {key}{near(wanted, settings)}")
    return rows[rows["setting"].isin(fitting)]


def _keep_round(rows: pd.DataFrame, which: str | int, key: str) -> pd.DataFrame:
    """The rows of one round (`last` and `first` are per run) or of all rounds."""
    if which == "all":
        return rows
    ends = {"last": "max", "first": "min"}
    chosen = rows.groupby(RUN, observed=True)["round"].transform(ends[str(which)]) if which in ends else which
    kept = rows[rows["round"] == chosen]
    if kept.empty:
        raise Untested(f"round {which} is not in {key}, whose last is {rows['round'].max()}")
    return kept


def _positions(rows: pd.DataFrame, along: str, key: str) -> pd.Series:
    """The number that each row's setting gives to the key `along`."""
    settings = rows["setting"].unique()
    pairs = {setting: dict(pair.partition("=")[::2] for pair in setting.split(",")) for setting in settings}
    try:
        return rows["setting"].map({setting: float(own[along]) for setting, own in pairs.items()})
    except KeyError as error:
        names = {name for own in pairs.values() for name in own if name != along}
        raise Untested(f"not every setting in {key} has the key '{along}'{near(along, names)}") from error
    except ValueError as error:
        raise Untested(f"the setting '{along}' in {key} is not a number: {error}") from error


def number_of(ref: float | str, study: str, published: pd.DataFrame | None) -> tuple[float, str]:
    """A number, or the published one with the id `ref`; and its text, with the printed spread."""
    value, deviation = ref, math.nan
    if isinstance(ref, str):
        found = pd.DataFrame(columns=["id"]) if published is None else published
        rows = found[found["id"] == ref]
        if len(rows) != 1:
            words, hint = ("stands more than once", "") if len(rows) else ("is not", near(ref, found["id"]))
            raise Untested(f"the id '{ref}' {words} in config/studies/{study}/published.csv{hint}")
        value, deviation = pd.to_numeric(rows[["value", "spread"]].iloc[0], errors="coerce")
    if not math.isfinite(float(value)):
        raise Untested(f"the published number '{ref}' has no value")
    return float(value), f"{value:.6g}" + (f" ± {deviation:.4g}" if math.isfinite(deviation) else "")


def spread(values: Sequence[float]) -> str:
    """`160 ± 8`: mean and standard deviation over seeds."""
    if len(values) == 0:
        return "no value"
    return f"{np.mean(values):.4g}" + (f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else "")


def label(quantity: Quantity, other: Quantity) -> str:
    """A quantity's algorithm; where `other` has the same, with the selectors that differ."""
    name, differing = str(quantity["algorithm"]), [key for key in quantity if quantity[key] != other.get(key)]
    if "algorithm" in differing or not differing:
        return name
    return f"{name} ({', '.join(str(quantity[key]) for key in differing)})"
