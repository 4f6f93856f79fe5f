"""Federated linear models. HM1: the tuned error, the gain from sharing, rounds until Θ settles. HM2: coverage of q(φ)'s
intervals, errors in units of the standardised target, errors of new devices."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final, rows

SETTLED = 0.01  # of the way from start to end: too small to see in a printed figure
EARLY = 60  # rounds; assumed: twice the number in the thesis, and before Ω makes the prior's step unstable
NOISE_FREE = "a_rmse_noise_free"
#: level of a central normal interval → its half width in sds
HALF_WIDTHS = {50: 0.67449, 80: 1.28155, 90: 1.64485, 95: 1.95996}
NEWCOMER_SAMPLES = (0, 1, 2, 3, 8, 32)
ENDS = [*RUN, "round"]
Found = Iterator[tuple[str, pd.DataFrame]]


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """All derived rows that the experiment's metrics allow."""
    errors = final(table, NOISE_FREE, split="test")[[*ENDS, "group", "value"]]
    found = [*tuned(table), *gains(errors), *spreads(errors), *settling(table)]
    for hm2 in (phi_coverage, scaled_errors, included_by_all, scarce_errors, newcomer_errors):
        found += hm2(table)
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
    """1 − error/reference, both against noise-free targets: over Separate's 600 steps with the same batches and noise,
    and over least squares. A group is an output, its arm first ("box 10, sd"); its Separate is "separate 10, sd"."""
    single = errors.assign(like=errors["group"].str.replace(r"^\w+", "separate", regex=True))
    for reference, algorithm, like in (("separate", "hm1", "like"), ("converged", "limit", "group")):
        own = errors[errors["algorithm"] == algorithm]
        alone = own["group"].str.startswith("separate") & (own["setting"] == own["setting"].min())
        own = own[alone if reference == "separate" else own["setting"] == reference]
        if not own.empty:
            own = own[["seed", "group", "value"]].rename(columns={"group": "own", "value": "reference"})
            both = single.merge(own, left_on=["seed", like], right_on=["seed", "own"])
            yield f"gain_over_{reference}", both.assign(value=1 - both["value"] / both["reference"])[errors.columns]


def spreads(errors: pd.DataFrame) -> Found:
    """spread_of_runs: the sd s over n runs of an error against noise-free targets, as the jackknife's pseudo-values
    n s − (n − 1) s_i, where s_i leaves out run i: their mean estimates the sd, their own spread its uncertainty."""
    runs = errors.groupby([*RUN[:2], "group"])["value"]
    n, mean, squares = runs.transform("size"), runs.transform("mean"), runs.transform("var", ddof=0)
    others = (squares - (errors["value"] - mean) ** 2 / (n - 1).clip(lower=1)) * n / (n - 1).clip(lower=1)  # ddof 0
    left_out = np.sqrt(others.clip(lower=0) * (n - 1) / (n - 2).clip(lower=1))
    pseudo = n * runs.transform("std") - (n - 1) * left_out
    if (n > 2).any():
        yield "spread_of_runs", errors.assign(value=pseudo)[n > 2]


def settling(table: pd.DataFrame) -> Found:
    """rounds_to_reach: rounds until ‖Θ̂ − Θ*‖/√K is within SETTLED of its way from its least value; rounds_to_settle:
    rounds after which it stays so close to its last value; early_rounds_to_settle: the same as if the run had ended
    after EARLY rounds; with _one by the one-norm."""
    for suffix in ("", "_one"):
        curves = rows(table, f"parameter_error{suffix}", split="server")
        for metric, count, last in (
            (f"rounds_to_reach{suffix}", rounds_to_reach, math.inf),
            (f"rounds_to_settle{suffix}", rounds_to_settle, math.inf),
            (f"early_rounds_to_settle{suffix}", rounds_to_settle, EARLY),
        ):
            runs = curves[curves["round"] <= last].groupby([*RUN, "group"], sort=False)
            own = ((run, curve) for run, curve in runs if curve["round"].nunique() > 2)
            found = [(*run, curve["round"].max(), count(curve)) for run, curve in own]
            if found:
                yield metric, pd.DataFrame(found, columns=[*RUN, "group", "round", "value"])


def rounds_to_reach(curve: pd.DataFrame) -> float:
    """As `rounds_to_settle`, of the least value; what follows does not count."""
    values = curve.set_index("round")["value"].sort_index()
    least, start = values.min(), values.iloc[0]
    return float(values.index[values <= least + SETTLED * (start - least)][0]) if math.isfinite(start) else math.inf


def rounds_to_settle(curve: pd.DataFrame) -> float:
    """`curve` has the columns round and value; infinite where a value is not finite."""
    values = curve.set_index("round")["value"].sort_index()
    end, way = values.iloc[-1], abs(values.iloc[-1] - values.iloc[0])
    if not math.isfinite(way):
        return math.inf
    away = values.index[(values - end).abs() > SETTLED * way]
    return float(away[-1] + 1) if len(away) else float(values.index[0])


def phi_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """mean, sd and truth of every component of φ with a known truth, at the end of each run; also RUN, round, step."""
    ends = pd.concat([final(table, "phi_mean"), final(table, "phi_sd")])
    wide = ends.pivot_table(index=[*ENDS, "step"], columns="metric", values="value").reset_index()
    truth = rows(table, "phi_true")[[*RUN, "step", "value"]].rename(columns={"value": "true"})
    return wide.merge(truth, on=[*RUN, "step"]).rename(columns={"phi_mean": "mean", "phi_sd": "sd"})


def phi_coverage(table: pd.DataFrame) -> Found:
    """phi_coverage_50 … 95: share of φ's components whose interval covers the truth; phi_all_covered: whether all 90 %
    intervals do; phi_off: the largest distance from the truth in sds."""
    if not (table["metric"] == "phi_true").any():
        return
    found = phi_intervals(table)
    off = (found["mean"] - found["true"]).abs() / found["sd"]
    for level, width in HALF_WIDTHS.items():
        covered = found.assign(value=(off <= width).astype(float)).groupby(ENDS)["value"]
        yield f"phi_coverage_{level}", covered.mean().reset_index()
        if level == 90:
            yield "phi_all_covered", covered.min().reset_index()
    yield "phi_off", found.assign(value=off).groupby(ENDS)["value"].max().reset_index()


def scaled_errors(table: pd.DataFrame) -> Found:
    """a_rmse_scaled (mean of the devices' test RMSEs), rmse_scaled (all test samples together) and those of the trivial
    predictor, in sds of the training targets, which the centralised fits of the same seed record."""
    unit = rows(table, "target_sd").groupby("seed")["value"].first()
    if unit.empty or np.isclose(unit, 1).all():
        return
    mse = final(table, "mse", split="test")
    mse = mse.assign(value=np.sqrt(mse["value"]) / mse["seed"].map(unit))
    single = mse["client"] >= 0
    yield "a_rmse_scaled", mse[single].groupby(ENDS)["value"].mean().reset_index()
    yield "rmse_scaled", mse[~single][[*ENDS, "value"]]
    for metric in ("a_rmse_trivial", "rmse_trivial"):
        own = final(table, metric, split="test")
        yield f"{metric}_scaled", own.assign(value=own["value"] / own["seed"].map(unit))[[*ENDS, "value"]]


def included_by_all(table: pd.DataFrame) -> Found:
    """predictors: their number; agreement: share of a device's included predictors that centralised lasso includes too
    (mean over devices)."""
    central = final(table, "theta_included", algorithm="reference", setting="lasso")
    if not central.empty:
        yield "predictors", central.groupby(ENDS)["step"].nunique().rename("value").reset_index()
    central = central[["seed", "step", "value"]]
    single = final(table, "theta_included")
    single = single[single["client"] >= 0]
    if central.empty or single.empty:
        return
    both = single.merge(central, on=["seed", "step"], suffixes=("", "_central"))
    chosen = both[both["value"] > 0]
    share = chosen.groupby([*ENDS, "client"])["value_central"].mean().groupby(ENDS).mean()
    yield "agreement", share.rename("value").reset_index()


def scarce_errors(table: pd.DataFrame) -> Found:
    """a_rmse_scarce: in Case II over the two devices with 20 samples, as in Case II of Table 3.1."""
    if not table["experiment"].str.endswith("/hm2_ii").any():
        return
    mse = final(table, "mse", split="test")
    mse = mse[mse["client"].isin([0, 1])]
    yield "a_rmse_scarce", mse.assign(value=np.sqrt(mse["value"])).groupby(ENDS)["value"].mean().reset_index()


def newcomer_errors(table: pd.DataFrame) -> Found:
    """newcomer_n: error of new devices with n samples, by their start (the group); `zero` is FedAvg's initial model."""
    errors = rows(table, "newcomer_rmse")
    if errors.empty:
        return
    last = errors["round"] == errors.groupby(RUN)["round"].transform("max")
    zero = (errors["round"] == 0) & (errors["group"] == "model")
    kept = pd.concat([errors[last], errors[zero].assign(group="zero")])
    for n in NEWCOMER_SAMPLES:
        yield f"newcomer_{n}", kept.loc[kept["step"] == n, [*RUN, "round", "group", "value"]]
