"""Derived measures of FGPR, one number per run.

- late_error: mean error over the last tenth of the rounds; error_left: late_error over the error at the start.
- decay_exponent: log(e_0/e_t)/log(1 + t) at the first round t whose error e_t is within twice late_error (or the last):
  1 if the error falls like 1/T down to its floor, more if it falls faster; none if it starts at its floor.
- the same of θ₂ and of θ₁ alone, with _noise and _signal.
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
    return derived_rows([*found.items(), *multi_fidelity_measures(table)], table)


def late_mean(values: np.ndarray) -> float:
    return float(values[-max(1, round(LATE * len(values))) :].mean())


def decay_exponent(errors: np.ndarray) -> float:
    """errors[t] of round t; NaN if the error starts at its floor."""
    floor = 2 * late_mean(errors)
    if errors[0] <= floor:
        return math.nan
    below = np.flatnonzero(errors <= floor)
    t = int(below[0]) if len(below) else len(errors) - 1
    return float(np.log(errors[0] / errors[t]) / np.log(1 + t))


def recovered_round(errors: np.ndarray, rounds: np.ndarray, share: float = 0.1) -> float:
    """The first of `rounds` from which all errors are within `share` of the last."""
    near = np.abs(errors - errors[-1]) <= share * errors[-1]
    return float(rounds[len(near) - np.argmin(near[::-1])] if not near.all() else rounds[0])


def _errors(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    for metric, suffix in (("error", ""), ("error_noise", "_noise"), ("error_signal", "_signal")):
        errors = rows(frame, metric).sort_values("round")["value"].to_numpy()
        if not len(errors):
            continue
        yield f"late_error{suffix}", late_mean(errors)
        if len(errors) > 1:
            yield f"error_left{suffix}", late_mean(errors) / errors[0]
            yield f"decay_exponent{suffix}", decay_exponent(errors)


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
