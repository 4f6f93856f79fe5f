"""Derived measures of FGPR, one number per run.

- late_error: mean error over the last tenth of the rounds; error_left: late_error over the error at the start.
- decay_exponent: minus the slope of log e over log(1 + T), T counting local steps, by least squares from the start to
  the first round whose error is within twice late_error (or the last), so above the floor: 1 if the error falls like
  1/T, more if it falls faster; none if it starts at its floor.
- the same of θ₂ and of θ₁ alone, with _noise and _signal, and of the squared norm of the full gradient, with _gradient.
- distance_left: squared distance of (θ₁, θ₂) from where maximum likelihood ends in the same run, over the last tenth of
  the rounds, divided by that of the start: 0 if both end in the same place.
- recovered_round: the first round from which the averaged test RMSE stays within a tenth of its last value.

Of multi-fidelity modelling (thesis §4.6), FGPR's gain by sharing and by budget, and the explained variance:
- explained: 1 − (RMSE / RMSE of the trivial predictor)² on the high fidelity's test points: 1 if the function is
  recovered, 0 if the training mean is as good.
- gain_published: 1 − RMSE of FGPR / RMSE of Separate, both by the published protocol.
- gain_budget: 1 − RMSE of Separate to convergence / RMSE of Separate by the published protocol: no sharing at all.
- gain_sharing, gain_sharing_ard: 1 − RMSE of one θ for all clients to convergence / RMSE of Separate to convergence.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final, rows

LATE = 0.1
ERRORS = {"error": "", "error_noise": "_noise", "error_signal": "_signal", "gradient_norm": "_gradient"}
MIN_ROUNDS = 5  # for a recovered_round
#: gain → the better arm and the worse: (algorithm, setting)
GAINS = {
    "gain_published": (("fgpr", "published"), ("separate", "published")),
    "gain_budget": (("baseline", "separate"), ("separate", "published")),
    "gain_sharing": (("baseline", "shared"), ("baseline", "separate")),
    "gain_sharing_ard": (("baseline", "shared ard"), ("baseline", "separate ard")),
}


def measure(table: pd.DataFrame) -> pd.DataFrame:
    found: dict[str, list[dict]] = {}
    for run, frame in table.groupby(RUN, sort=False):
        last = int(frame["round"].max())
        for metric, value in (*_errors(frame), *_recovery(frame)):
            if math.isfinite(value):
                found.setdefault(metric, []).append(dict(zip(RUN, run, strict=True), value=value, round=last))
    return derived_rows([*found.items(), *_distances(table), *multi_fidelity_measures(table)], table)


def late_mean(values: np.ndarray) -> float:
    return float(values[-max(1, round(LATE * len(values))) :].mean())


def decay_exponent(errors: np.ndarray, iterations: np.ndarray) -> float:
    """errors [n] after as many iterations [n]; NaN if the error starts at its floor."""
    floor = 2 * late_mean(errors)
    if errors[0] <= floor:
        return math.nan
    below = np.flatnonzero(errors <= floor)
    last = int(below[0]) if len(below) else len(errors) - 1
    slope, _ = np.polyfit(np.log1p(iterations[: last + 1]), np.log(errors[: last + 1]), 1)
    return -float(slope)


def recovered_round(errors: np.ndarray, rounds: np.ndarray, share: float = 0.1) -> float:
    """The first of `rounds` from which all errors are within `share` of the last."""
    near = np.abs(errors - errors[-1]) <= share * errors[-1]
    return float(rounds[len(near) - np.argmin(near[::-1])] if not near.all() else rounds[0])


def _errors(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    steps = rows(frame, "iterations").set_index("round")["value"]
    for metric, suffix in ERRORS.items():
        own = rows(frame, metric).sort_values("round")
        errors = own["value"].to_numpy()
        if not len(errors):
            continue
        yield f"late_error{suffix}", late_mean(errors)
        if len(errors) > 1 and np.isfinite(errors).all() and len(steps):
            yield f"error_left{suffix}", late_mean(errors) / errors[0]
            yield f"decay_exponent{suffix}", decay_exponent(errors, steps.loc[own["round"]].to_numpy())


def _distances(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """distance_left of every run with rounds, if maximum likelihood was run on the same data."""
    theta = table[table["metric"].isin(["theta_signal", "theta_noise"])]
    wide = theta.pivot_table(index=[*RUN, "round"], columns="metric", values="value").reset_index()
    ends = wide[wide["algorithm"] == "gp_maximum"].drop_duplicates("seed").set_index("seed")
    found = []
    for run, own in wide[wide["algorithm"] != "gp_maximum"].groupby(RUN, sort=False):
        about = dict(zip(RUN, run, strict=True))
        if about["seed"] not in ends.index or len(own) < 2:
            continue
        apart = sum((own[c] - ends.loc[about["seed"], c]) ** 2 for c in ("theta_signal", "theta_noise")).to_numpy()
        found.append(about | {"value": late_mean(apart) / apart[0], "round": int(own["round"].max())})
    if found:
        yield "distance_left", pd.DataFrame(found)


def _recovery(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    own = rows(frame, "a_rmse", split="test", group="").sort_values("round")
    if len(own) > MIN_ROUNDS:
        yield "recovered_round", recovered_round(own["value"].to_numpy(), own["round"].to_numpy())


def multi_fidelity_measures(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(metric, one value per run) of the experiments of §4.6, recognised by their names."""
    if not table["experiment"].str.contains("/(?:multi_fidelity|one_dimensional)_").any():
        return
    overall = {"split": "test", "group": "", "client": -1}
    errors, trivial = (final(table, metric, **overall) for metric in ("a_rmse", "a_rmse_trivial"))
    both = errors.merge(trivial[[*RUN, "value"]], on=RUN, suffixes=("", "_trivial"))
    yield "explained", both.assign(value=1 - (both["value"] / both["value_trivial"]) ** 2)[[*RUN, "round", "value"]]
    for name, (better, worse) in GAINS.items():
        pair = [errors[(errors["algorithm"] == a) & (errors["setting"] == s)] for a, s in (better, worse)]
        found = pair[0].merge(pair[1][["seed", "value"]], on="seed", suffixes=("", "_worse"))
        if len(found):
            yield name, found.assign(value=1 - found["value"] / found["value_worse"])[[*RUN, "round", "value"]]
