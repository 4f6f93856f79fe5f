"""Statistics of the devices' test accuracies, as in the authors' plot_fairness.py: mean over devices, means of the
int(K/10) worst and best, and the variance of the percentages (np.var · 10⁴); and what claims compare."""

from typing import Any

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final

STATISTICS = ("average", "worst_tenth", "best_tenth", "variance")


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """A tidy table → one row per run and statistic, in points."""
    devices = final(table[table["client"] >= 0], "accuracy", split="test")
    found = {run: _statistics(100 * own["value"].to_numpy()) for run, own in devices.groupby(RUN, sort=False)}
    rounds = int(devices["round"].max())
    lines: dict[str, list[dict[str, Any]]] = {}
    for run, own in found.items():
        for metric, value in {**own, **_lost(_plain(found, run), own)}.items():
            lines.setdefault(metric, []).append({**dict(zip(RUN, run, strict=True)), "round": rounds, "value": value})
    return derived_rows(lines.items(), table)


def _plain(found: dict[tuple, dict[str, float]], run: tuple) -> dict[str, float]:
    """The same seed with q = 0."""
    algorithm, _, seed = run
    return found[algorithm, "q=0", seed]


def _lost(plain: dict[str, float], own: dict[str, float]) -> dict[str, float]:
    pairs = {"lost_on_average": "average", "lost_by_best": "best_tenth"}
    return {name: plain[of] - own[of] for name, of in pairs.items()}


def _statistics(accuracy: np.ndarray) -> dict[str, float]:
    ordered, tenth = np.sort(accuracy), max(1, len(accuracy) // 10)
    values = (ordered.mean(), ordered[:tenth].mean(), ordered[-tenth:].mean(), ordered.var())
    found = dict(zip(STATISTICS, map(float, values), strict=True))
    return {**found, "gap_to_worst": found["average"] - found["worst_tenth"]}
