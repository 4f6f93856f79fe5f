"""Quantities of a claim: one number a seed from rows of a tidy table, or a published number; and their words.

A quantity picks rows and reduces them to one number a seed (`std` divides by n). Its `setting` holds the
pairs that a run's setting must contain. Rows are never mixed by accident: where several settings or splits
fit, or rows of single clients (groups) stand beside overall rows, it must say which. `all` takes every
setting, every single client or group; `max` and `min` run over all settings unasked, as a worst case does.
`seconds` is the time that a run took, from the manifests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedrepro.errors import nearest
from fedrepro.evidence.intervals import rank_correlation

RUN = ["setting", "seed"]
NONE = {"group": "", "client": -1}
# Over clients the spread is that of the population at hand, hence ddof 0.
REDUCE = {name: name for name in ("mean", "median", "max", "min")} | {"std": lambda x: x.std(ddof=0)}
MIN_TREND_POINTS = 3


class Untested(Exception):
    """A claim cannot be decided; the text is the reason."""


@dataclass(frozen=True)
class Measured:
    """Finite `values` by seed. A run is a setting and a seed; `absent` seeds have a sound run, no value."""

    values: pd.Series
    seeds: int
    runs: int
    diverged: int
    absent: int
    data: frozenset[str]

    def losses(self, of: str = "") -> str:
        """Words on what is left out, to append to a reason; `of` names the method."""
        words = f"; {self.diverged} of {self.runs} runs{of} diverged" if self.diverged else ""
        return words + f"; {self.absent} of {self.seeds} seeds{of} without a value" * bool(self.absent)


def measure(tables: Mapping[str, pd.DataFrame], study: str, quantity: dict) -> Measured:
    """One number a seed: what its rows reduce to or, with `along`, their rank correlation with that."""
    key, along = f"{study}/{quantity['experiment']}", quantity.get("along")
    if key not in tables:
        raise Untested(f"there is no table {key}{near(key, tables)}")
    rows = _keep(tables[key], "algorithm", quantity["algorithm"], key)
    any_setting = quantity.get("setting") == "all" or quantity.get("reduce") in ("max", "min")
    if quantity.get("setting", "all") != "all":
        rows = _keep_setting(rows, quantity["setting"], key)
    if along:
        rows = rows.assign(along=rows["round"] if along == "round" else _positions(rows, along, key))
    if not any_setting and len({_without(setting, along) for setting in rows["setting"].unique()}) > 1:
        raise Untested(f"the claim must say which setting: {key} has {_listed(rows['setting'])}")
    rows = rows.assign(diverged=rows.groupby(RUN, observed=True)["diverged"].transform("any"))
    flagged = rows.groupby(RUN, observed=True)["diverged"].any()
    runs, seeds, data = len(flagged), rows["seed"].nunique(), frozenset(rows["data"].unique())
    if flagged.all():
        return Measured(pd.Series(dtype=float), seeds, runs, runs, 0, data)

    rows = _keep(rows, "metric", quantity["metric"], key)
    for column in ("split", "group", "client"):
        # Splits are never averaged; clients and groups may be, but not together with the overall rows.
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
        correlations = {seed: rank_correlation(own["along"], own["value"]) for seed, own in curves.items()}
        values = pd.Series(correlations, dtype=float)
    else:
        values = rows.groupby("seed")["value"].agg(reduce)
    return Measured(values, seeds, runs, len(diverged), len(sound - set(values.index)), data)


def with_seconds(table: pd.DataFrame, manifests: Iterable[Mapping]) -> pd.DataFrame:
    """The table with `seconds` of every run: the time of its job, shared out evenly to the runs that went together.

    Time is no part of a tidy table, which is the same bytes on every run; the manifests have it.
    """
    found = []
    for manifest in manifests:
        own = table[(table["algorithm"] == manifest["algorithm"]) & table["seed"].isin(manifest["seeds"])]
        runs = own.drop_duplicates(RUN)
        each = manifest["seconds"] / max(1, len(runs))
        found.append(runs.assign(metric="seconds", split="", group="", client=-1, step=0, value=each))
    return pd.concat([table, *found], ignore_index=True)


def near(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean …?` where a candidate is close, else nothing: a reason has no room for a list."""
    hint = nearest(name, candidates)
    return hint if hint.startswith("; did you mean") else ""


def _listed(column: pd.Series) -> str:
    """The first few values of a column, in words."""
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
    """The rows of the setting `wanted`, or else of all settings that contain its pairs."""
    settings, pairs = rows["setting"].unique(), set(wanted.split(","))
    fitting = [s for s in settings if s == wanted] or [s for s in settings if pairs <= set(s.split(","))]
    if not fitting:
        raise Untested(f"setting '{wanted}' is not in {key}{near(wanted, settings)}")
    return rows[rows["setting"].isin(fitting)]


def _keep_round(rows: pd.DataFrame, which: str | int, key: str) -> pd.DataFrame:
    """The rows of one round (`last` and `first` are each run's own) or of all."""
    if which == "all":
        return rows
    if which in ("last", "first"):
        ends = rows.groupby(RUN, observed=True)["round"].transform("max" if which == "last" else "min")
        return rows[rows["round"] == ends]
    kept = rows[rows["round"] == which]
    if kept.empty:
        raise Untested(f"round {which} is not in {key}, whose last is {rows['round'].max()}")
    return kept


def _without(setting: str, key: str | None) -> str:
    """The setting without the pair of one key."""
    return ",".join(pair for pair in setting.split(",") if pair.partition("=")[0] != key)


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
    """A number, or the published one with the id `ref`; and in words, with its printed spread."""
    value, deviation = ref, math.nan
    if isinstance(ref, str):
        ids = [] if published is None else published["id"].tolist()
        if ids.count(ref) != 1:
            words = "stands more than once" if ref in ids else "is not"
            hint = "" if ref in ids else near(ref, ids)
            raise Untested(f"the id '{ref}' {words} in config/published/{study}.csv{hint}")
        row = published.iloc[ids.index(ref)]
        value, deviation = pd.to_numeric(row[["value", "spread"]], errors="coerce")
    if not math.isfinite(value):
        raise Untested(f"the published number '{ref}' has no value")
    return float(value), f"{value:.6g}" + (f" ± {deviation:.4g}" if math.isfinite(deviation) else "")


def spread(values: Sequence[float]) -> str:
    """`160 ± 8`: mean and standard deviation over seeds."""
    if len(values) == 0:
        return "no value"
    return f"{np.mean(values):.4g}" + (f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else "")


def label(quantity: dict, other: dict) -> str:
    """What tells a quantity from another: its algorithm, or else the selectors that differ."""
    differing = [key for key in quantity if quantity[key] != other.get(key)]
    if "algorithm" in differing or not differing:
        return quantity["algorithm"]
    return f"{quantity['algorithm']} ({', '.join(str(quantity[key]) for key in differing)})"
