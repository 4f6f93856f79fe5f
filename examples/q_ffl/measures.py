"""Statistics of the devices' test accuracies, as in the authors' plot_fairness.py: mean over devices, means of the
int(K/10) worst and best, and the variance of the percentages (np.var · 10⁴); and what claims compare."""

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows, final

STATISTICS = ("average", "worst_tenth", "best_tenth", "variance")


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """A tidy table → one row per run and statistic, in points."""
    devices = final(table[table["client"] >= 0], "accuracy", split="test")
    found = {run: _statistics(100 * own["value"].to_numpy()) for run, own in devices.groupby(RUN, sort=False)}
    rounds = int(devices["round"].max())
    lines = [
        {**dict(zip(RUN, run, strict=True)), "round": rounds, "metric": metric, "value": value}
        for run, own in found.items()
        for metric, value in {**own, "lost_on_average": _plain(found, run)["average"] - own["average"]}.items()
    ]
    return derived_rows(pd.DataFrame(lines).groupby("metric", sort=False), table)


def _plain(found: dict[tuple, dict[str, float]], run: tuple) -> dict[str, float]:
    """The same seed with q = 0."""
    algorithm, _, seed = run
    return found[algorithm, "q=0", seed]


def _statistics(accuracy: np.ndarray) -> dict[str, float]:
    ordered, tenth = np.sort(accuracy), max(1, len(accuracy) // 10)
    values = (ordered.mean(), ordered[:tenth].mean(), ordered[-tenth:].mean(), ordered.var())
    found = dict(zip(STATISTICS, map(float, values), strict=True))
    return {**found, "gap_to_worst": found["average"] - found["worst_tenth"]}
