"""Federated linear models: the tuned error, the gain from sharing, rounds until Θ settles."""

from __future__ import annotations

import math

import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final, rows
from fedrepro.studies.fedlin.measures_hm2 import Found, hm2_measures

SETTLED = 0.01  # of the way from start to end: too small to see in a printed figure
EARLY = 60  # rounds; assumed: twice the number in the thesis, and before Ω makes the prior's step unstable
NOISE_FREE = "a_rmse_noise_free"


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """All derived rows that the experiment's metrics allow."""
    errors = final(table, NOISE_FREE, split="test")[[*RUN, "round", "group", "value"]]
    found = [*tuned(table), *gains(errors), *spreads(errors), *settling(table), *hm2_measures(table)]
    return derived_rows(found, table)


def variant(setting: str) -> str:
    """A setting without the points of its grid: `box,lr=0.1` → `box`."""
    return ",".join(part for part in setting.split(",") if "=" not in part)


def tuned(table: pd.DataFrame) -> Found:
    """a_rmse_tuned: test error of the setting with the least validation error, per run, method and output."""
    errors = final(table, "a_rmse")
    wide = errors[errors["split"].isin(["validation", "test"])]
    wide = wide.pivot_table(index=[*RUN, "round", "group"], columns="split", values="value").reset_index()
    if "validation" not in wide:
        return
    wide = wide.dropna(subset=["validation", "test"])
    wide["variant"] = wide["setting"].map(variant)
    best = wide.loc[wide.groupby(["algorithm", "variant", "seed", "group"])["validation"].idxmin()]
    yield "a_rmse_tuned", best.rename(columns={"test": "value"})[[*RUN, "round", "group", "value"]]


def gains(errors: pd.DataFrame) -> Found:
    """1 − error/reference, both against noise-free targets: over Separate's 600 steps, and over least squares."""
    for reference, algorithm in (("separate", "hm1"), ("converged", "limit")):
        own = errors[(errors["algorithm"] == algorithm) & (errors["setting"] == reference)]
        if not own.empty:
            both = errors.merge(own[["seed", "group", "value"]], on=["seed", "group"], suffixes=("", "_reference"))
            gain = 1 - both["value"] / both["value_reference"]
            yield f"gain_over_{reference}", both.assign(value=gain)[errors.columns]


def spreads(errors: pd.DataFrame) -> Found:
    """spread_of_runs: the sd over the runs of an error against noise-free targets, in each run's row."""
    spread = errors.groupby([*RUN[:2], "group"])["value"].transform("std")
    if spread.notna().any():
        yield "spread_of_runs", errors.assign(value=spread).dropna(subset="value")


def settling(table: pd.DataFrame) -> Found:
    """rounds_to_settle: rounds after which ‖Θ̂ − Θ*‖/√K stays within SETTLED of its way from its last value;
    early_rounds_to_settle: the same as if the run had ended after EARLY rounds."""
    curves = rows(table, "parameter_error", split="server")
    for metric, last in (("rounds_to_settle", math.inf), ("early_rounds_to_settle", EARLY)):
        found = [
            (*run, own["round"].max(), rounds_to_settle(own))
            for run, own in curves[curves["round"] <= last].groupby([*RUN, "group"], sort=False)
            if own["round"].nunique() > 2
        ]
        if found:
            yield metric, pd.DataFrame(found, columns=[*RUN, "group", "round", "value"])


def rounds_to_settle(curve: pd.DataFrame) -> float:
    """`curve` has the columns round and value; infinite where a value is not finite."""
    values = curve.set_index("round")["value"].sort_index()
    end, way = values.iloc[-1], abs(values.iloc[-1] - values.iloc[0])
    if not math.isfinite(way):
        return math.inf
    away = values.index[(values - end).abs() > SETTLED * way]
    return float(away[-1] + 1) if len(away) else float(values.index[0])
