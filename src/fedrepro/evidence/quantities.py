"""Quantities of a claim: one number per seed from a tidy table; and their wording.

A quantity selects rows and reduces them to one number per seed (`std` divides by n). Its `setting` holds the pairs
that a run's setting must contain. Rows are never mixed by accident: where several settings or splits match, or both
single clients (groups) and overall rows, the claim must choose. `all` takes every setting, or every single client or
group; `max` and `min` cover all settings by default, as worst cases. `seconds` is a run's time, from the manifests.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.errors import nearest
from fedrepro.evidence.arms import Arm, arms_of
from fedrepro.evidence.intervals import Numbers, Sample

NONE = {"group": "", "client": -1}
# The clients are the whole population, hence ddof 0.
REDUCE: dict[str, Any] = {"mean": np.mean, "median": np.median, "max": np.max, "min": np.min, "std": np.std}
MIN_TREND_POINTS = 3
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

    def losses(self, of: str = "") -> str:
        """Text on what is left out, to append to a reason; `of` names the method."""
        words = ""
        if self.diverged:
            rest = f", median of the rest {self.values.median():.4g}" if len(self.values) else ""
            words = (
                f"; {self.diverged} of {self.runs} runs{of} diverged ({100 * self.diverged / self.runs:.0f} %){rest}"
            )
        return words + f"; {self.absent} of {self.seeds} seeds{of} without a value" * bool(self.absent)


class Measurements:
    """The tables of a study, each cut by algorithm and metric once, and every quantity measured once. tables: tidy
    tables by experiment; manifests: of all their runs."""

    def __init__(self, study: str, tables: Mapping[str, pd.DataFrame], manifests: Iterable[Manifest] = ()):
        self.study, self.tables = study, tables
        self._manifests: dict[str, list[Manifest]] = {}
        for manifest in manifests:
            experiment = manifest["experiment"].partition("/")[2]
            self._manifests.setdefault(experiment, []).append(manifest)
        self._arms: dict[str, dict[str, Arm]] = {}
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

    def manifests(self, quantity: Quantity) -> list[Manifest]:
        """Of the runs behind a quantity, whose algorithm may be a variant: measures may name rows by it."""
        mine, name = self._manifests.get(quantity["experiment"], []), quantity["algorithm"]
        own = [manifest for manifest in mine if manifest["algorithm"] == name]
        return own or [m for m in mine if any(of["variant"] == name for of in m["settings"].values())]

    def _arm(self, quantity: Quantity) -> Arm:
        name, algorithm = quantity["experiment"], quantity["algorithm"]
        if name not in self.tables:
            known = [f"{self.study}/{table}" for table in self.tables]
            raise Untested(f"{self.study}/{name} was not run{near(f'{self.study}/{name}', known)}")
        if name not in self._arms:
            self._arms[name] = arms_of(self.tables[name])
        arms = self._arms[name]
        if algorithm not in arms:
            raise Untested(f"algorithm '{algorithm}' is not in {self.study}/{name}{near(algorithm, arms)}")
        if quantity["metric"] == "seconds" and "seconds" not in arms[algorithm].metrics:
            own = [manifest for manifest in self.manifests(quantity) if manifest["algorithm"] == algorithm]
            if own:
                arms[algorithm] = arms[algorithm].with_metric("seconds", _seconds(arms[algorithm], own))
        return arms[algorithm]


def _seconds(arm: Arm, manifests: Iterable[Manifest]) -> Numbers:
    """The time of every run: that of its job, divided evenly among its runs."""
    found = np.full(len(arm.of_run["seed"]), np.nan)
    for manifest in manifests:
        mine = np.isin(arm.of_run["seed"], manifest["seeds"])
        found[mine] = manifest["seconds"] / max(1, mine.sum())
    return found


def measure(arm: Arm, key: str, quantity: Quantity) -> Measured:
    """One number per seed: its reduced rows or, with `along`, their rank correlation with that setting or round."""
    along, wanted = quantity.get("along"), quantity.get("setting", "all")
    chosen = arm.settings if wanted == "all" else _fitting(arm.settings, wanted, key)
    positions = _positions(chosen, along, key) if along and along != "round" else {}
    others = {tuple(p for p in setting.split(",") if p.partition("=")[0] != along) for setting in chosen}
    if len(others) > 1 and quantity.get("setting") != "all" and quantity.get("reduce") not in ("max", "min"):
        raise Untested(f"the claim must say which setting: {key} has {_listed(chosen)}")
    taken, gone = arm.runs_of(chosen), arm.of_run["diverged"].copy()
    if not gone[taken].all():
        rows = _rows(arm, key, quantity, taken)
        gone[arm.run[rows][~np.isfinite(arm.columns["value"][rows])]] = True
        rows = rows[~gone[arm.run[rows]]]
        values = _values(arm, rows, quantity, positions, key, bool(gone[taken].any()))
    else:
        values = pd.Series(dtype=float)
    seeds = {kind: set(arm.of_run["seed"][taken & runs].tolist()) for kind, runs in (("lost", gone), ("sound", ~gone))}
    return Measured(
        values=values,
        seeds=len(seeds["lost"] | seeds["sound"]),
        runs=int(taken.sum()),
        diverged=int((taken & gone).sum()),
        absent=len(seeds["sound"] - set(values.index)),
        lost=tuple(sorted(seeds["lost"] - set(values.index))),
        data=arm.data,
    )


def _rows(arm: Arm, key: str, quantity: Quantity, taken: Numbers) -> Numbers:
    """The rows that a quantity selects, of the runs taken."""
    metric, rows = quantity["metric"], arm.metrics.get(quantity["metric"], np.empty(0, dtype=int))
    rows = rows[taken[arm.run[rows]]]
    if not len(rows):
        raise Untested(f"metric '{metric}' is not in {key}{near(metric, arm.metrics)}")
    for column in ("split", "group", "client"):
        if column in quantity:
            wanted = quantity[column]
            every = column in NONE and wanted == "all"
            kept = rows[~arm.equal(column, NONE[column], rows) if every else arm.equal(column, wanted, rows)]
            if not len(kept):
                raise Untested(f"{column} '{wanted}' is not in {key}{near(wanted, arm.values(column, rows))}")
            rows = kept
            continue
        # Splits are never averaged; clients and groups may be, but not mixed with the overall rows.
        values = arm.values(column, rows)
        if len(values) > 1 and NONE.get(column, values[0]) in values:
            raise Untested(f"the claim must say which {column}: {key} has {_listed(values)}")
    return rows if quantity.get("along") == "round" else _of_round(arm, rows, quantity.get("round", "last"), key)


def _of_round(arm: Arm, rows: Numbers, which: str | int, key: str) -> Numbers:
    """The rows of one round (`last` and `first` are per run) or of all rounds."""
    if which == "all":
        return rows
    at, run = arm.columns["round"][rows], arm.run[rows]
    chosen: Any = which
    if which in ("last", "first"):
        ends = np.full(len(arm.of_run["seed"]), -1 if which == "last" else np.iinfo(np.int64).max)
        (np.maximum if which == "last" else np.minimum).at(ends, run, at)
        chosen = ends[run]
    if not (kept := at == chosen).any():
        raise Untested(f"round {which} is not in {key}, whose last is {at.max()}")
    return np.asarray(rows[kept])


def _values(
    arm: Arm, rows: Numbers, quantity: Quantity, positions: Mapping[str, float], key: str, diverged: bool
) -> pd.Series:
    """The rows' values, reduced per seed; or the rank correlation of those reduced per seed and place along."""
    seed, value, reduce = arm.columns["seed"][rows], arm.columns["value"][rows], REDUCE[quantity.get("reduce", "mean")]
    along = quantity.get("along")
    if not along:
        return pd.Series({s: reduce(value[own]) for s, own in _grouped(seed)}, dtype=float)
    at = arm.columns["round"][rows]
    if along != "round":
        at = np.array([positions.get(name, np.nan) for name in arm.names["setting"]])[arm.columns["setting"][rows]]
    curves = {}
    for s, own in _grouped(seed):
        points = {place: reduce(value[own][there]) for place, there in _grouped(at[own])}
        if len(points) >= MIN_TREND_POINTS:
            curves[s] = _rank_correlation(np.array(list(points)), np.array(list(points.values())))
    if not curves and not diverged:
        raise Untested(f"a trend needs {MIN_TREND_POINTS} values of '{along}', {key} has fewer")
    return pd.Series(curves, dtype=float)


def _grouped(keys: Numbers) -> Iterator[tuple[Any, Numbers]]:
    """(key, where it is), upwards."""
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True) if len(found) else ()


def _rank_correlation(x: Numbers, y: Numbers) -> float:
    """Spearman's ρ: the correlation of the ranks, ties sharing theirs; 0 if either is constant."""
    a, b = (pd.Series(v).rank().to_numpy() - (len(v) + 1) / 2 for v in (x, y))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size else 0.0


def near(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean …?` where a candidate is close, else nothing: a list would be too long for a reason."""
    hint = nearest(name, map(str, candidates))
    return hint if hint.startswith("; did you mean") else ""


def _listed(found: Iterable[Any]) -> str:
    """The first few values."""
    values = [f"'{value}'" for value in sorted(found)]
    return ", ".join(values[:4]) + ", …" * (len(values) > 4)


def _fitting(settings: Sequence[str], wanted: str, key: str) -> list[str]:
    """The setting `wanted`, else all settings that contain its pairs."""
    if not (fitting := fitting_settings(settings, wanted)):
        raise Untested(f"setting '{wanted}' is not in {key}{near(wanted, settings)}")
    return fitting


def fitting_settings(settings: Iterable[str], wanted: str) -> list[str]:
    """The setting `wanted`, else all settings that contain its pairs, else none."""
    settings, pairs = list(settings), set(wanted.split(","))
    return [s for s in settings if s == wanted] or [s for s in settings if pairs <= set(s.split(","))]


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
    sample = Sample.of(values)
    return f"{sample.mean:.4g}" + (f" ± {sample.se * len(values) ** 0.5:.2g}" if len(values) > 1 else "")


def label(quantity: Quantity, other: Quantity) -> str:
    """A quantity's algorithm; where `other` has the same, with the selectors that differ."""
    name, differing = str(quantity["algorithm"]), [key for key in quantity if quantity[key] != other.get(key)]
    if "algorithm" in differing or not differing:
        return name
    return f"{name} ({', '.join(str(quantity[key]) for key in differing)})"
