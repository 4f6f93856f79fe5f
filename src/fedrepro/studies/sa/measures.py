"""Stochastic approximation: ends and oscillation of the test curves, and iterates compared with the ODE.

For the runs on images, on the global test set:
- late_accuracy, late_loss: means over the last fifth of the rounds; spread_accuracy, spread_loss: deviations over them.
- best_round: the round with the highest accuracy, the first of them.
- oscillation_accuracy, oscillation_loss: roughness (fedrepro.core.metrics) of the last two thirds of the curve.
- for the settings `sa` and `sa_round`, against FedAvg of the same seed, positive where the paper's claim holds:
  accuracy_lead_over_fedavg and loss_lead_over_fedavg (of the late means), steadier_accuracy_than_fedavg and
  steadier_loss_than_fedavg (of the oscillations); the same with fedprox.
- with a validation set, validation_loss: its mean over the last fifth of the rounds. Of each algorithm, the setting
  with the lowest mean over seeds is chosen, none that diverged; its measures again as chosen_late_loss, …

For the runs on least squares (`sa_tracked`), with w^s the solution of the ODE (37) from w̄(s):
- window_distance, by the round n in which a window begins: the largest ‖w̄_{mN} − w^{T_n}(T_m)‖ over the rounds m with
  T_m in (T_n, T_n + 1]. Windows begin at rounds in geometric progression and end within the run.
- equilibrium_distance: ‖w̄ − w*‖ at the same rounds and at the last, h(w*) = 0; equilibrium_remaining: that of the last
  round as a share of the start's.
- distance_exponent: the slope of log window_distance over log n.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from fedrepro.core.metrics import roughness
from fedrepro.evidence.tables import RUN, derived_rows, rows

LATE = 0.2  # of the rounds
SETTLED = 1 / 3  # of the rounds: before it, curves still fall
BASELINES = ("fedavg", "fedprox")
TAPERING = ("sa", "sa_round")
OF_THE_CHOSEN = ("late_accuracy", "late_loss", "oscillation_accuracy", "oscillation_loss")
WINDOW = 1.0  # T; assumed: the paper's theorem holds for any
WINDOWS = 12

Found = tuple[str, int, float]  # metric, round, value


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """The measures above, as far as the runs of a table allow them."""
    found: list[dict[str, Any]] = []
    for run, frame in table.groupby(RUN, sort=False):
        each = _tracking(frame) if (frame["metric"] == "ode_time").any() else _curves(frame)
        found += [dict(zip(RUN, run, strict=True), metric=m, round=r, value=v) for m, r, v in each]
    if not found:
        return table.iloc[:0]
    runs = pd.DataFrame(found)
    best = runs.merge(choose(runs, table), on=["algorithm", "setting"])
    best = best[best["metric"].isin(OF_THE_CHOSEN)]
    every = pd.concat([runs, pd.DataFrame(_leads(runs)), best.assign(metric="chosen_" + best["metric"])])
    return derived_rows(every.groupby("metric", sort=False), table)


def choose(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """(algorithm, setting) with the lowest mean validation loss, of each algorithm that has one."""
    arm = ["algorithm", "setting"]
    gone = table.loc[table["diverged"].astype(bool), arm].drop_duplicates()
    means = rows(runs, "validation_loss").groupby(arm)["value"].mean()
    means = means[~means.index.isin(list(gone.itertuples(index=False, name=None)))]
    best = means.groupby("algorithm").idxmin()
    return pd.DataFrame(best.tolist(), columns=arm)


def _curves(frame: pd.DataFrame) -> Iterator[Found]:
    for name in ("accuracy", "loss"):
        curve = rows(frame, name, split="test", client=-1).set_index("round")["value"].sort_index()
        if len(curve) < 2:
            continue
        last = int(curve.index[-1])
        late = curve[curve.index > (1 - LATE) * last]
        yield f"late_{name}", last, float(late.mean())
        yield f"spread_{name}", last, float(late.std(ddof=0))
        if math.isfinite(rough := roughness(curve[curve.index > SETTLED * last].to_numpy())):
            yield f"oscillation_{name}", last, rough
        if name == "accuracy":
            yield "best_round", last, float(curve.idxmax())
    held_out = rows(frame, "loss", split="validation", client=-1).set_index("round")["value"]
    if len(held_out) > 1:
        last = int(held_out.index.max())
        yield "validation_loss", last, float(held_out[held_out.index > (1 - LATE) * last].mean())


def _leads(found: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Each tapering run against the baselines of its seed."""
    wide = found.pivot_table(index=RUN, columns="metric", values="value")
    last = found.groupby(RUN)["round"].max()
    for run, own in wide[wide.index.isin(TAPERING, level="setting")].iterrows():
        about = {**dict(zip(RUN, run, strict=True)), "round": int(last[run])}
        others = wide.xs(run[2], level="seed").droplevel("algorithm")
        for metric, value in _against(own, others):
            if math.isfinite(value):
                yield {**about, "metric": metric, "value": value}


def _against(own: pd.Series, others: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """(metric, value) of a run against the runs of its seed, by setting."""
    for baseline in (name for name in BASELINES if name in others.index):
        rival = others.loc[baseline]
        for name, sign in (("accuracy", 1), ("loss", -1)):
            yield f"{name}_lead_over_{baseline}", sign * float(own[f"late_{name}"] - rival[f"late_{name}"])
            if (rough := f"oscillation_{name}") in own:
                yield f"steadier_{name}_than_{baseline}", float(rival[rough] - own[rough])


class Trajectory(NamedTuple):
    """The iterates of a run and the ODE ẇ = b − Hw."""

    time: np.ndarray  # [rounds], interpolated
    iterates: np.ndarray  # [rounds, d]
    h: np.ndarray  # [d, d]
    b: np.ndarray  # [d]

    def solution(self, start: int, at: np.ndarray) -> np.ndarray:
        """The ODE's solution from the iterate of round `start`, at increasing times [n]: [n, d]."""
        span, first = (self.time[start], at[-1]), self.iterates[start]
        solved = solve_ivp(lambda _, w: self.b - self.h @ w, span, first, t_eval=at, rtol=1e-8, atol=1e-10)
        return np.transpose(solved.y)


def trajectory(run: pd.DataFrame) -> Trajectory:
    """The trajectory from the rows of one run."""
    index = {"ode_time": "round", "iterate": "round", "ode_curvature": "client", "ode_linear": "client"}
    time, iterates, h, b = (
        rows(run, metric).pivot_table(index=by, columns="step", values="value").to_numpy()
        for metric, by in index.items()
    )
    return Trajectory(time[:, 0], iterates, h, b[0])


def _tracking(frame: pd.DataFrame) -> Iterator[Found]:
    path = trajectory(frame)
    last, equilibrium = len(path.time) - 1, np.linalg.solve(path.h, path.b)

    def distance(n: int) -> float:
        return float(np.linalg.norm(path.iterates[n] - equilibrium))

    distances = {n: window_distance(path, n) for n in window_starts(path.time)}
    yield from (("window_distance", n, distance) for n, distance in distances.items())
    for n in (*distances, last):
        yield "equilibrium_distance", n, distance(n)
    yield "equilibrium_remaining", last, distance(last) / distance(0)
    if len(distances) > 2 and min(distances.values()) > 0:
        slope = np.polyfit(np.log(list(distances)), np.log(list(distances.values())), 1)[0]
        yield "distance_exponent", last, float(slope)


def window_starts(time: np.ndarray) -> list[int]:
    """Rounds n ≥ 1 whose windows (T_n, T_n + T] end within the run and contain a round; at most WINDOWS."""
    fits = (time + WINDOW <= time[-1]) & (np.append(time[1:], np.inf) <= time + WINDOW)
    possible = [n for n in np.flatnonzero(fits).tolist() if n]
    if not possible:
        return []
    wanted = np.geomspace(possible[0], possible[-1], WINDOWS)
    return sorted({min(possible, key=lambda n: abs(n - w)) for w in wanted})


def window_distance(path: Trajectory, start: int) -> float:
    """The largest distance of the iterates to the ODE's solution from round `start`, over one window."""
    inside = (path.time > path.time[start]) & (path.time <= path.time[start] + WINDOW)
    return float(np.linalg.norm(path.iterates[inside] - path.solution(start, path.time[inside]), axis=1).max())
