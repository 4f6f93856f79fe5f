"""Fairness over devices and groups (thesis §2.5): the spread of the training loss, which the penalty acts on; in per
cent, mean and spread of the accuracies, the spread due to the finite test set, and accuracies of groups; the tuning
rule, and the spreads that a mean allows.

Several methods share a job as its variants; here each gets its own name: rows of `global` with the setting `q_ffl,q=1`
become derived rows of the algorithm `q_ffl` with the setting `q=1`.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final, rows

#: "superior or similar to FedAvg": at most so many points below its mean accuracy; assumed: the thesis has no number
SIMILAR = 1.0
SMALLEST = 1e-15  # a gap below it is rounding
CURVES = ("gap", "gap_own", "bound", "gradient")  # of the theory, over rounds
BASE, PERSONAL = "fedavg", "gifair_per"


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """Fairness measures per run; those of the settings that the tuning rule chooses again as `chosen_…`."""
    named = methods(table)
    if curves := [(metric, own) for metric in CURVES if len(own := rows(named, metric))]:
        offsets = rows(named, "offset")
        return derived_rows([(f"{metric}_rate", rates(own, offsets)) for metric, own in curves], named)
    runs = pd.DataFrame(_runs(named))
    if runs.empty:
        return table.iloc[:0]
    choice = choose(runs)
    best = runs.merge(choice[choice["chosen"]][["algorithm", "setting"]], on=["algorithm", "setting"])
    best = best[~best["metric"].str.startswith("validation")]
    both = pd.concat([runs, best.assign(metric="chosen_" + best["metric"])])
    frame = derived_rows(both.groupby("metric", sort=False), named)
    gone = rows(named, "diverged").assign(split="derived")
    return pd.concat([frame, gone[list(frame)]], ignore_index=True)


def methods(table: pd.DataFrame) -> pd.DataFrame:
    """The table with each variant as an algorithm and with the grid's point as its setting."""
    algorithm = table["variant"].where(table["variant"] != "", table["algorithm"])
    return table.assign(algorithm=algorithm, setting=table["point"])


def rates(curves: pd.DataFrame, offsets: pd.DataFrame) -> pd.DataFrame:
    """Slope of log value over log(γ + T) per run, from the means over (T/8, T/4] and (T/2, T]: −1 is O(1/(γ + T)), as
    the theorems print it. `offsets` has γ in rounds; a run without has 0. Means, since H has kinks, about which the
    curve oscillates. Of the gradient's square, that of its least value so far (Theorem 12)."""
    curves = curves.sort_values("round")
    if (curves["metric"] == "gradient").all():
        curves = curves.assign(value=curves.groupby(RUN)["value"].cummin())
    offset = curves.merge(offsets[[*RUN, "value"]], on=RUN, how="left", suffixes=("", "_offset"))["value_offset"]
    curves = curves.assign(since=1 / (curves["round"] + offset.fillna(0).to_numpy()).clip(lower=1))
    share = curves["round"] / curves.groupby(RUN)["round"].transform("max")
    inside = (curves[(share > low) & (share <= high)] for low, high in ((1 / 8, 1 / 4), (1 / 2, 1)))
    early, late = (own.groupby(RUN)[["value", "since"]].mean().clip(lower=SMALLEST) for own in inside)
    ratio = np.log(late / early)
    slope = (-ratio["value"] / ratio["since"]).rename("value").reset_index()
    return slope.merge(curves.groupby(RUN, as_index=False)["round"].max(), on=RUN)


def _runs(named: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """One line per run and metric."""
    device = ["seed", "split", "client"]
    devices = rows(named, "samples").drop_duplicates(device)[[*device, "group", "value"]]
    each = final(named[named["client"] >= 0], "accuracy").drop(columns="group")
    each = each.merge(devices.rename(columns={"value": "samples"}), on=device)
    for run, own in each.groupby(RUN, sort=False):
        line = dict(zip(RUN, run, strict=True)) | {"round": int(own["round"].max()), "group": ""}
        for split, prefix in (("validation", "validation_"), ("test", "")):
            for metric, group, value in fairness(own[own["split"] == split]):
                yield line | {"metric": prefix + metric, "group": group, "value": 100 * value}
    losses = final(named[named["client"] >= 0], "loss", split="train").drop(columns="group")
    for run, own in losses.merge(devices.drop(columns="value"), on=device).groupby(RUN, sort=False):
        line = dict(zip(RUN, run, strict=True)) | {"round": int(own["round"].max()), "group": ""}
        yield from (line | {"metric": metric, "value": value} for metric, value in loss_fairness(own))
    for metric in ("bytes_down", "bytes_up", "lambda_max", "lambda"):
        yield from rows(named, metric)[[*RUN, "round", "group", "metric", "value"]].to_dict("records")
    by_run = rows(named, "rank_agreement").groupby(RUN, as_index=False)
    agreement = by_run.agg(value=("value", "mean"), round=("round", "max"))
    yield from agreement.assign(metric="rank_agreement", group="").to_dict("records")


def fairness(own: pd.DataFrame) -> Iterator[tuple[str, str, float]]:
    """(metric, group, value) of one run, from its devices' `value` (accuracy), `samples` of the test set, `group`."""
    if own.empty:
        return
    accuracy, samples = own["value"].to_numpy(), own["samples"].to_numpy()
    chance, variance = sampling_variance(accuracy, samples), accuracy.var()
    unfairness = math.sqrt(variance)
    yield "accuracy", "", float(accuracy.mean())
    yield "spread", "", unfairness
    yield "sampling", "", math.sqrt(chance)
    yield "excess", "", math.sqrt(max(0.0, variance - chance))
    yield "worst_tenth", "", float(np.sort(accuracy)[: max(1, len(accuracy) // 10)].mean())
    groups = own.groupby("group")["value"].mean()
    if len(groups) > 1:
        unfairness = float(groups.max() - groups.min())
        for name, value in groups.items():
            yield "group_accuracy", str(name), float(value)
        yield "discrepancy", "", unfairness
        yield "worst_group", "", float(groups.min())
        yield "best_group", "", float(groups.max())
    yield "unfairness", "", unfairness


def loss_fairness(own: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """(metric, value) of one run, from its devices' `value` (training loss of the model in use) and `group`: the spread
    over devices and, with groups, the penalty Σ_{i<j} |L_i − L_j| of (2.1)."""
    yield "loss_spread", float(own["value"].std(ddof=0))
    means = own.groupby("group")["value"].mean().to_numpy()
    if len(means) > 1:
        yield "loss_discrepancy", float(np.abs(means[:, None] - means[None]).sum() / 2)


def sampling_variance(accuracy: np.ndarray, samples: np.ndarray) -> float:
    """The part of the variance over K devices that is due to their finite test sets: (1 − 1/K) times the mean of
    a_k(1 − a_k)/(n_k − 1), an unbiased estimate if the samples of a device are independent."""
    known = samples > 1
    if not known.any():
        return 0.0
    each = accuracy[known] * (1 - accuracy[known]) / (samples[known] - 1)
    return float((1 - 1 / len(accuracy)) * each.mean())


def choose(runs: pd.DataFrame) -> pd.DataFrame:
    """All candidates of each method with their validation means over seeds, and the choice by the rule of §2.5.1:
    of the settings whose mean accuracy is superior or similar to FedAvg's, the one with the least spread (with groups:
    discrepancy); if there is none, no setting is admissible and none is chosen. The thesis says "testing accuracy",
    here it is validation. GIFAIR-FL-Per is not tuned to λ = 0, which is FedAvg whose devices keep their last models."""
    columns = ["algorithm", "setting", "accuracy", "unfairness", "similar", "chosen"]
    wanted = runs[runs["metric"].isin(["validation_accuracy", "validation_unfairness"])]
    if wanted.empty:
        return pd.DataFrame(columns=columns)
    wide = wanted.pivot_table(index=columns[:2], columns="metric", values="value", sort=False)
    wide = wide.rename(columns=lambda metric: metric.removeprefix("validation_")).reset_index()
    base = wide.loc[wide["algorithm"] == BASE, "accuracy"].max()
    wide["similar"] = wide["accuracy"] >= base - SIMILAR if np.isfinite(base) else True
    wide["chosen"] = False
    is_fedavg = (wide["algorithm"] == PERSONAL) & (wide["setting"] == "fraction=0")
    for _, own in wide[wide["similar"] & ~is_fedavg].groupby("algorithm"):
        wide.loc[own["unfairness"].idxmin(), "chosen"] = True
    return wide[columns]


def smallest_spread(mean: float, samples: float) -> float:
    """The spread over equally good devices with test sets of `samples` each: √(a(1 − a)/n); larger if sizes differ."""
    return math.sqrt(mean * (1 - mean) / samples)


def largest_spread(mean: float, samples: float, classes: int, held: int) -> float:
    """The largest spread of one model on devices that only differ in their `held` of `classes` classes, in equal parts,
    where these are random subsets.

    With class accuracies of mean a and variance v ≤ a(1 − a), a device's expected accuracy varies by
    v/held · (classes − held)/(classes − 1), a sample of that size without replacement, and its finite test set adds
    (a(1 − a) − v)/n. The sum is linear in v, so one of its ends is the largest.
    """
    between = (classes - held) / (held * (classes - 1))
    return math.sqrt(mean * (1 - mean) * max(between, 1 / samples))


def largest_spread_of_any_deal(mean: float, samples: float, classes: int, held: int) -> float:
    """The same bound however the classes are dealt, each to equally many devices.

    A device's expected accuracy is at most 1 and, as the other classes have at most 1 each, at least
    m = (classes · a − (classes − held))/held. Numbers in [m, 1] with mean a have a variance of at most (1 − a)(a − m)
    (Bhatia, Davis), which complementary halves reach. The finite test set adds at most a(1 − a)/n.
    """
    least = max(0.0, (classes * mean - (classes - held)) / held)
    return math.sqrt((1 - mean) * (mean - least) + mean * (1 - mean) / samples)
