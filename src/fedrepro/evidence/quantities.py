"""Quantities of a claim: one number per seed from a tidy table; and their wording.

A quantity selects rows and reduces them to one number per seed (`std` divides by n). Its `setting` holds the pairs
that a run's setting must contain. Rows are never mixed by accident: where several settings or splits match, or both
single clients (groups) and overall rows, the claim must choose. `all` takes every setting, or every single client or
group; `max` and `min` cover all settings by default, as worst cases. `seconds` is a run's time, from the manifests.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.metrics import rank_correlation
from fedrepro.errors import nearest
from fedrepro.evidence.intervals import Numbers

RUN = ["setting", "seed"]
NONE = {"group": "", "client": -1}
# The clients are the whole population, hence ddof 0.
REDUCE: dict[str, Any] = {n: n for n in ("mean", "median", "max", "min")} | {"std": lambda x: x.std(ddof=0)}
MIN_TREND_POINTS = 3
TEXTS = ("setting", "metric", "split", "group", "data")  # compared often: as categories
Quantity = dict[str, Any]
Manifest = Mapping[str, Any]


class Untested(Exception):
    """The claim cannot be decided; the text gives the reason."""


@dataclass(frozen=True)
class Measured:
    """Finite `values` by seed. A run is a setting and a seed; `absent` seeds have a sound run but no value, `lost` ones
    a diverged run and no value."""

    values: pd.Series
    seeds: int
    runs: int
    diverged: int
    absent: int
    lost: tuple[int, ...]
    data: frozenset[str]
    settings: frozenset[str]

    def losses(self, of: str = "") -> str:
        """Text on what is left out, to append to a reason; `of` names the method."""
        words = ""
        if self.diverged:
            rest = f", median of the rest {self.values.median():.4g}" if len(self.values) else ""
            words = f"; {self.diverged} of {self.runs} runs{of} diverged ({self.diverged / self.runs:.0%}){rest}"
        return words + f"; {self.absent} of {self.seeds} seeds{of} without a value" * bool(self.absent)


class _Arm:
    """The rows of one algorithm of a table, cut by metric once."""

    def __init__(self, rows: pd.DataFrame, manifests: Iterable[Manifest]):
        kept = rows[[*TEXTS, "seed", "round", "client", "value", "diverged"]]
        self.rows = kept.astype(dict.fromkeys(TEXTS, "category"))
        self.runs = self.rows.groupby(RUN, observed=True)["diverged"].any().reset_index().astype({"setting": str})
        self.data = frozenset(self.rows["data"].unique())
        self.metrics = [*self.rows["metric"].unique()]
        self._of = self.rows.groupby("metric", observed=True).indices
        self._manifests = manifests

    def of(self, metric: str) -> pd.DataFrame | None:
        if metric == "seconds":
            return self._seconds()
        return self.rows.iloc[self._of[metric]] if metric in self._of else None

    def _seconds(self) -> pd.DataFrame | None:
        """The time of every run: that of its job, divided evenly among its runs."""
        found = []
        for manifest in self._manifests:
            runs = self.runs[self.runs["seed"].isin(manifest["seeds"])]
            found.append(runs.assign(value=manifest["seconds"] / max(1, len(runs))))
        if not found:
            return None
        return pd.concat(found).assign(metric="seconds", split="", group="", client=-1, round=0)


class Measurements:
    """The tables of a study, each cut by algorithm and metric once, and every quantity measured once. tables: tidy
    tables by experiment; manifests: of all their runs."""

    def __init__(self, study: str, tables: Mapping[str, pd.DataFrame], manifests: Iterable[Manifest] = ()):
        self.study, self.tables = study, tables
        self.manifests: dict[tuple[str, str], list[Manifest]] = {}
        for manifest in manifests:
            experiment = manifest["experiment"].partition("/")[2]
            self.manifests.setdefault((experiment, manifest["algorithm"]), []).append(manifest)
        self._arms: dict[str, dict[str, Any]] = {}
        self._known: dict[str, Measured | Untested] = {}

    def of(self, quantity: Quantity) -> Measured:
        """One number per seed; Untested where the rows are missing or ambiguous."""
        key = json.dumps(quantity, sort_keys=True)
        if key not in self._known:
            try:
                self._known[key] = measure(self._arm(quantity), f"{self.study}/{quantity['experiment']}", quantity)
            except Untested as reason:
                self._known[key] = reason
        found = self._known[key]
        if isinstance(found, Untested):
            raise found
        return found

    def _arm(self, quantity: Quantity) -> _Arm:
        name, algorithm = quantity["experiment"], quantity["algorithm"]
        if name not in self.tables:
            known = [f"{self.study}/{table}" for table in self.tables]
            raise Untested(f"there is no table {self.study}/{name}{near(f'{self.study}/{name}', known)}")
        table = self.tables[name]
        if name not in self._arms:
            self._arms[name] = dict(table.groupby("algorithm", observed=True).indices)
        arms = self._arms[name]
        if algorithm not in arms:
            raise Untested(f"algorithm '{algorithm}' is not in {self.study}/{name}{near(algorithm, arms)}")
        if not isinstance(arms[algorithm], _Arm):
            arms[algorithm] = _Arm(table.iloc[arms[algorithm]], self.manifests.get((name, algorithm), ()))
        return arms[algorithm]  # type: ignore[no-any-return]


def measure(arm: _Arm, key: str, quantity: Quantity) -> Measured:
    """One number per seed: its reduced rows or, with `along`, their rank correlation with that setting or round."""
    along, wanted = quantity.get("along"), quantity.get("setting", "all")
    settings = list(arm.runs["setting"].unique())
    chosen = settings if wanted == "all" else _fitting(settings, wanted, key)
    positions = _positions(chosen, along, key) if along and along != "round" else {}
    others = {tuple(p for p in setting.split(",") if p.partition("=")[0] != along) for setting in chosen}
    if len(others) > 1 and quantity.get("setting") != "all" and quantity.get("reduce") not in ("max", "min"):
        raise Untested(f"the claim must say which setting: {key} has {_listed(chosen)}")
    runs = arm.runs[arm.runs["setting"].isin(chosen)]
    seeds, used = runs["seed"].nunique(), frozenset(chosen)
    flagged = set(runs.loc[runs["diverged"], RUN].itertuples(index=False, name=None))
    if len(flagged) == len(runs):
        lost = tuple(sorted(runs["seed"].unique()))
        return Measured(pd.Series(dtype=float), seeds, len(runs), len(runs), 0, lost, arm.data, used)

    rows = arm.of(quantity["metric"])
    rows = rows if rows is None or len(chosen) == len(settings) else rows[rows["setting"].isin(chosen)]
    if rows is None or rows.empty:
        metric = quantity["metric"]
        raise Untested(f"metric '{metric}' is not in {key}{near(metric, arm.metrics)}")
    for column in ("split", "group", "client"):
        # Splits are never averaged; clients and groups may be, but not mixed with the overall rows.
        alike = NONE.get(column, rows[column].iloc[0])
        if column in quantity:
            rows = _keep(rows, column, quantity[column], key)
        elif (rows[column] == alike).nunique() > 1:
            raise Untested(f"the claim must say which {column}: {key} has {_listed(rows[column].unique())}")
    if along != "round":
        rows = _keep_round(rows, quantity.get("round", "last"), key)
    infinite = rows[~np.isfinite(rows["value"])]
    diverged = flagged | {
        (str(setting), seed) for setting, seed in zip(infinite["setting"], infinite["seed"], strict=True)
    }
    if diverged:
        gone = [(str(s), seed) in diverged for s, seed in zip(rows["setting"], rows["seed"], strict=True)]
        rows = rows[~np.array(gone)]
    sound = {seed for setting, seed in runs[RUN].itertuples(index=False, name=None) if (setting, seed) not in diverged}

    reduce = REDUCE[quantity.get("reduce", "mean")]
    if along:
        at = rows["round"] if along == "round" else rows["setting"].astype(str).map(positions)
        values = _correlations(rows.assign(along=at), along, reduce, key, bool(diverged))
    else:
        values = rows.groupby("seed")["value"].agg(reduce)
    absent, lost = len(sound - set(values.index)), tuple(sorted({s for _, s in diverged} - set(values.index)))
    return Measured(values, seeds, len(runs), len(diverged), absent, lost, arm.data, used)


def _correlations(rows: pd.DataFrame, along: str, reduce: Any, key: str, diverged: bool) -> pd.Series:
    """Per seed, the rank correlation of its reduced values with `along`."""
    points = rows.groupby(["seed", "along"])["value"].agg(reduce).reset_index("along")
    curves = {seed: own for seed, own in points.groupby("seed") if len(own) >= MIN_TREND_POINTS}
    if not curves and not diverged:
        raise Untested(f"a trend needs {MIN_TREND_POINTS} values of '{along}', {key} has fewer")
    return pd.Series({s: rank_correlation(own["along"], own["value"]) for s, own in curves.items()}, dtype=float)


def near(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean …?` where a candidate is close, else nothing: a list would be too long for a reason."""
    hint = nearest(name, map(str, candidates))
    return hint if hint.startswith("; did you mean") else ""


def _listed(found: Iterable[Any]) -> str:
    """The first few values."""
    values = [f"'{value}'" for value in sorted(found)]
    return ", ".join(values[:4]) + ", …" * (len(values) > 4)


def _keep(rows: pd.DataFrame, column: str, wanted: object, key: str) -> pd.DataFrame:
    """The rows whose column is `wanted` (`all`: any single client or group)."""
    every = column in NONE and wanted == "all"
    kept = rows[rows[column] != NONE[column]] if every else rows[rows[column] == wanted]
    if kept.empty:
        raise Untested(f"{column} '{wanted}' is not in {key}{near(wanted, rows[column].unique())}")
    return kept


def _fitting(settings: Sequence[str], wanted: str, key: str) -> list[str]:
    """The setting `wanted`, else all settings that contain its pairs."""
    if not (fitting := fitting_settings(settings, wanted)):
        raise Untested(f"setting '{wanted}' is not in {key}{near(wanted, settings)}")
    return fitting


def fitting_settings(settings: Iterable[str], wanted: str) -> list[str]:
    """The setting `wanted`, else all settings that contain its pairs, else none."""
    settings, pairs = list(settings), set(wanted.split(","))
    return [s for s in settings if s == wanted] or [s for s in settings if pairs <= set(s.split(","))]


def _keep_round(rows: pd.DataFrame, which: str | int, key: str) -> pd.DataFrame:
    """The rows of one round (`last` and `first` are per run) or of all rounds."""
    if which == "all" or (which in ("last", "first") and rows["round"].nunique() == 1):
        return rows
    ends = {"last": "max", "first": "min"}
    chosen = rows.groupby(RUN, observed=True)["round"].transform(ends[str(which)]) if which in ends else which
    kept = rows[rows["round"] == chosen]
    if kept.empty:
        raise Untested(f"round {which} is not in {key}, whose last is {rows['round'].max()}")
    return kept


def _positions(settings: Iterable[str], along: str, key: str) -> dict[str, float]:
    """The number that each setting gives to the key `along`."""
    pairs = {setting: dict(pair.partition("=")[::2] for pair in setting.split(",")) for setting in settings}
    try:
        return {setting: float(own[along]) for setting, own in pairs.items()}
    except KeyError as error:
        names = {name for own in pairs.values() for name in own if name != along}
        raise Untested(f"not every setting in {key} has the key '{along}'{near(along, names)}") from error
    except ValueError as error:
        raise Untested(f"the setting '{along}' in {key} is not a number: {error}") from error


def spread(values: Numbers) -> str:
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
