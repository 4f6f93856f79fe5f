"""Stochastic approximation: where the test curves end and how much they oscillate, and iterates beside the ODE.

Of the runs on pictures, on the global test set:
- late_accuracy, late_loss: means over the last fifth of the rounds (20 of 100); spread_accuracy, spread_loss: standard
  deviations over the same.
- best_round: the round with the highest accuracy, the first of them.
- oscillation_accuracy, oscillation_loss: what is left of a curve once its trend is taken away (fedrepro.evidence.roughness), over
  the last two thirds of the rounds. A curve that falls along a line or a parabola has none.
- of the settings `sa` and `sa_round`, against the better of FedAvg and FedProx of the same seed, positive where the
  paper's claim holds: accuracy_lead, loss_lead, steadier_accuracy, steadier_loss. constant_lead: late_loss of the best
  constant step in hindsight (FedAvg's and the smaller ones), less one's own.

Of the runs on least squares (`sa_tracked`), with w^s the solution of the ODE (37) from w̄(s):
- window_distance, by the round n in which a window begins: the largest ‖w̄_{mN} − w^{T_n}(T_m)‖ over the rounds m with
  T_m in (T_n, T_n + 1]. Windows begin at rounds in geometric progression and end within the run.
- equilibrium_distance: ‖w̄ − w*‖ at the same rounds and at the last, h(w*) = 0.
- distance_exponent: the slope of log window_distance over log n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from fedrepro.evidence.roughness import roughness
from fedrepro.evidence.tables import RUN, derived_rows, rows

LATE = 0.2  # of the rounds
SETTLED = 1 / 3  # of the rounds: what comes before is the way down
BASELINES = ("fedavg", "fedprox")
TAPERING = ("sa", "sa_round")
CONSTANT = ("fedavg", "smaller_step", "smallest_step")
WINDOW = 1.0  # T; assumed: the paper's theorem is for any
WINDOWS = 12

Found = tuple[str, int, float]  # metric, round, value


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """All of the above that the runs of a table allow."""
    found: list[dict] = []
    for run, frame in table.groupby(RUN, sort=False):
        each = _tracking(frame) if (frame["metric"] == "ode_time").any() else _curves(frame)
        found += [dict(zip(RUN, run, strict=True), metric=m, round=r, value=v) for m, r, v in each]
    if not found:
        return table.iloc[:0]
    found += list(_leads(pd.DataFrame(found)))
    return derived_rows(pd.DataFrame(found).groupby("metric", sort=False), table)


# --- pictures ---------------------------------------------------------------------------------------------------------


def _curves(frame: pd.DataFrame) -> Iterator[Found]:
    for name in ("accuracy", "loss"):
        curve = rows(frame, name, split="test", client=-1).set_index("round")["value"].sort_index()
        if len(curve) < 2:
            continue
        last = int(curve.index[-1])
        late = curve[curve.index > (1 - LATE) * last]
        yield f"late_{name}", last, float(late.mean())
        yield f"spread_{name}", last, float(late.std(ddof=0))
        rough = roughness(curve[curve.index > SETTLED * last].to_numpy())
        if math.isfinite(rough):
            yield f"oscillation_{name}", last, rough
        if name == "accuracy":
            yield "best_round", last, float(curve.idxmax())


def _leads(found: pd.DataFrame) -> Iterator[dict]:
    """Each tapering run against the baselines of its seed."""
    wide = found.pivot_table(index=RUN, columns="metric", values="value")
    comparisons = {
        "accuracy_lead": ("late_accuracy", BASELINES, "max", 1),
        "loss_lead": ("late_loss", BASELINES, "min", -1),
        "steadier_accuracy": ("oscillation_accuracy", BASELINES, "min", -1),
        "steadier_loss": ("oscillation_loss", BASELINES, "min", -1),
        "constant_lead": ("late_loss", CONSTANT, "min", -1),
    }
    for run, own in wide.iterrows():
        _, setting, seed = run
        if setting not in TAPERING:
            continue
        last = int(found.loc[(found[RUN] == list(run)).all(axis=1), "round"].max())
        for metric, (of, others, best, sign) in comparisons.items():
            if of not in wide:
                continue
            rivals = wide.loc[[i for i in wide.index if i[1] in others and i[2] == seed], of].dropna()
            if len(rivals) == len(others) and math.isfinite(own[of]):
                value = sign * (own[of] - rivals.agg(best))
                yield dict(zip(RUN, run, strict=True), metric=metric, round=last, value=float(value))


# --- the ODE ----------------------------------------------------------------------------------------------------------


def _tracking(frame: pd.DataFrame) -> Iterator[Found]:
    time = rows(frame, "ode_time").set_index("round")["value"].sort_index().to_numpy()
    iterates = rows(frame, "iterate").pivot_table(index="round", columns="step", values="value").to_numpy()
    h = rows(frame, "ode_curvature").pivot_table(index="client", columns="step", values="value").to_numpy()
    b = rows(frame, "ode_linear").sort_values("step")["value"].to_numpy()
    equilibrium = np.linalg.solve(h, b)
    starts, distances = [], []
    for n in window_starts(time):
        starts.append(n)
        distances.append(window_distance(time, iterates, h, b, n))
        yield "window_distance", n, distances[-1]
    for n in (*starts, len(time) - 1):
        yield "equilibrium_distance", n, float(np.linalg.norm(iterates[n] - equilibrium))
    if len(starts) > 2 and min(distances) > 0:
        yield "distance_exponent", len(time) - 1, float(np.polyfit(np.log(starts), np.log(distances), 1)[0])


def window_starts(time: np.ndarray) -> list[int]:
    """Rounds n ≥ 1 whose windows (T_n, T_n + T] end within the run and have a round in them; at most WINDOWS."""
    fits = (time + WINDOW <= time[-1]) & (np.append(time[1:], np.inf) <= time + WINDOW)
    possible = [n for n in np.flatnonzero(fits).tolist() if n]
    if not possible:
        return []
    wanted = np.geomspace(possible[0], possible[-1], WINDOWS)
    return sorted({min(possible, key=lambda n: abs(n - w)) for w in wanted})


def window_distance(time: np.ndarray, iterates: np.ndarray, h: np.ndarray, b: np.ndarray, start: int) -> float:
    """The largest distance of the iterates to the ODE's solution from the first of them, over one window."""
    inside = np.flatnonzero((time > time[start]) & (time <= time[start] + WINDOW))
    span = (time[start], time[inside[-1]])
    solved = solve_ivp(lambda _, w: b - h @ w, span, iterates[start], t_eval=time[inside], rtol=1e-8, atol=1e-10)
    return float(np.linalg.norm(iterates[inside] - solved.y.T, axis=1).max())
