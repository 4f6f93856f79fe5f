"""Fairness over devices and groups (thesis §2.5): mean and spread of the accuracies with the part that is only the
finite test set, accuracies of groups, the choice of the tuning grids, and which spreads a mean allows at all.

Accuracies and what is made of them are in per cent, as the thesis prints them. Several methods share a job; here each
gets its own name: rows of `global` with the setting `q_ffl,q=1` become derived rows of the algorithm `q_ffl` with the
setting `q=1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, TABLE_COLUMNS, derived_rows, final, rows

#: "superior or similar to FedAvg": so many points below its mean accuracy; assumed: the thesis names no number
SIMILAR = 1.0
BASE = "fedavg"


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """Per run what its devices' accuracies come to; for the setting that the tuning rule chooses the same again, as
    `chosen_…`."""
    named = methods(table)
    runs = pd.DataFrame([line for line in _runs(named)])
    if runs.empty:
        return table.iloc[:0]
    choice = choose(runs)
    best = runs.merge(choice[choice["chosen"]][["algorithm", "setting"]], on=["algorithm", "setting"])
    best = best[~best["metric"].str.startswith("validation")]
    both = pd.concat([runs, best.assign(metric="chosen_" + best["metric"])])
    frame = derived_rows(both.groupby("metric", sort=False), named)
    gone = rows(named, "diverged").assign(split="derived")
    return pd.concat([frame, gone[TABLE_COLUMNS]], ignore_index=True)


def methods(table: pd.DataFrame) -> pd.DataFrame:
    """The table with each method as an algorithm of its own, and what is left of the setting."""
    parts = table["setting"].str.partition(",")
    return table.assign(algorithm=parts[0], setting=parts[2])


def _runs(named: pd.DataFrame) -> Iterator[dict]:
    """One line a run and metric."""
    devices = rows(named, "samples").drop_duplicates(["seed", "split", "client"])
    devices = devices[["seed", "split", "client", "group", "value"]].rename(columns={"value": "samples"})
    each = final(named[named["client"] >= 0], "accuracy").drop(columns="group")
    each = each.merge(devices, on=["seed", "split", "client"])
    for run, own in each.groupby(RUN, sort=False):
        line = dict(zip(RUN, run, strict=True)) | {"round": int(own["round"].max()), "group": ""}
        for split, prefix in (("validation", "validation_"), ("test", "")):
            for metric, group, value in fairness(own[own["split"] == split]):
                yield line | {"metric": prefix + metric, "group": group, "value": 100 * value}
    for metric in ("bytes_down", "bytes_up", "lambda_max", "lambda"):
        yield from rows(named, metric)[[*RUN, "round", "group", "metric", "value"]].to_dict("records")
    agreement = (
        rows(named, "rank_agreement").groupby(RUN, as_index=False).agg(value=("value", "mean"), round=("round", "max"))
    )
    yield from agreement.assign(metric="rank_agreement", group="").to_dict("records")


def fairness(own: pd.DataFrame) -> Iterator[tuple[str, str, float]]:
    """(metric, group, value) from one run's devices: `value` their accuracies, `samples` of the test set, `group`."""
    if own.empty:
        return
    accuracy, samples = own["value"].to_numpy(), own["samples"].to_numpy()
    chance = sampling_variance(accuracy, samples)
    variance = accuracy.var()
    yield "accuracy", "", float(accuracy.mean())
    yield "spread", "", math.sqrt(variance)
    yield "sampling", "", math.sqrt(chance)
    yield "excess", "", math.sqrt(max(0.0, variance - chance))
    yield "worst_tenth", "", float(np.sort(accuracy)[: max(1, len(accuracy) // 10)].mean())
    groups = own.groupby("group")["value"].mean()
    if len(groups) > 1:
        for name, value in groups.items():
            yield "group_accuracy", str(name), float(value)
        yield "discrepancy", "", float(groups.max() - groups.min())
        yield "worst_group", "", float(groups.min())
        yield "best_group", "", float(groups.max())
    yield "unfairness", "", float(groups.max() - groups.min()) if len(groups) > 1 else math.sqrt(variance)


def sampling_variance(accuracy: np.ndarray, samples: np.ndarray) -> float:
    """The part of the variance over K devices that their finite test sets give: (1 − 1/K) times the mean of
    a_k(1 − a_k)/(n_k − 1), which has that expectation where the samples of a device are independent."""
    known = samples > 1
    if not known.any():
        return 0.0
    each = accuracy[known] * (1 - accuracy[known]) / (samples[known] - 1)
    return float((1 - 1 / len(accuracy)) * each.mean())


# --- tuning -----------------------------------------------------------------------------------------------------------


def choose(runs: pd.DataFrame) -> pd.DataFrame:
    """All candidates of every method with their validation means over seeds, and the chosen one of each.

    The rule of §2.5.1: of the settings whose mean accuracy is superior or similar to FedAvg's the one with the least
    spread (of the groups: the least discrepancy); where no setting is similar, the one with the largest mean accuracy.
    The thesis says "testing accuracy"; here it is the validation accuracy.
    """
    wanted = runs[runs["metric"].isin(["validation_accuracy", "validation_unfairness"])]
    if wanted.empty:
        return pd.DataFrame(columns=["algorithm", "setting", "accuracy", "unfairness", "similar", "chosen"])
    wide = wanted.pivot_table(
        index=["algorithm", "setting"], columns="metric", values="value", sort=False
    ).reset_index()
    wide = wide.rename(columns={f"validation_{name}": name for name in ("accuracy", "unfairness")})
    base = wide.loc[wide["algorithm"] == BASE, "accuracy"].max()
    wide["similar"] = wide["accuracy"] >= base - SIMILAR if np.isfinite(base) else True
    wide["chosen"] = False
    for _, own in wide.groupby("algorithm"):
        similar = own[own["similar"]]
        best = own["accuracy"].idxmax() if similar.empty else similar["unfairness"].idxmin()
        wide.loc[best, "chosen"] = True
    return wide[["algorithm", "setting", "accuracy", "unfairness", "similar", "chosen"]]


# --- what a mean allows -----------------------------------------------------------------------------------------------


def smallest_spread(mean: float, samples: float) -> float:
    """The spread over devices that are all equally good, from test sets of `samples` each: √(a(1 − a)/n). Devices that
    differ in size have a larger one, as the mean of 1/n is not below 1 over the mean."""
    return math.sqrt(mean * (1 - mean) / samples)


def largest_spread(mean: float, samples: float, classes: int, held: int) -> float:
    """The largest spread that one model can have on devices with `held` of `classes` classes each, in equal parts, if
    devices differ in their classes only.

    With class accuracies q_c of mean a and variance v ≤ a(1 − a), a device's expected accuracy varies by
    v/held · (classes − held)/(classes − 1), a sample of that size without replacement, and its finite test set adds
    (a(1 − a) − v)/n. The sum is linear in v, so one of its ends is the largest.
    """
    between = (classes - held) / (held * (classes - 1))
    return math.sqrt(mean * (1 - mean) * max(between, 1 / samples))
