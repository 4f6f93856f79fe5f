"""DFL: the bounds of Lemma 1, Lemma 4 and Theorem 1, and measures of the runs against them.

All servers start from one model, so ‖W₀ − 1w̄₀ᵀ‖ = 0 and its terms are left out of the bounds below.
"""

import math

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows

SETTLED = 1e-3  # of the starting distance: too small to see in a printed figure
AGREED = 1e-3  # of ‖w*‖
INDISTINCT = 1e-2  # of ‖w*‖: curves this close are one line in a printed figure


def lemma1_bound(servers: int, client_steps: int, theta: float, gamma: float, sigma: float) -> float:
    """(8): ‖w_pⁱ − w̄_p‖ ≤ √M·T_C·θ·γ·σ_A/(1 − σ_A)."""
    return math.sqrt(servers) * client_steps * theta * gamma * sigma / (1 - sigma)


def residual(servers: int, client_steps: int, theta: float, gamma: float, sigma: float, smoothness: float) -> float:
    """Y₀ of (23): (γT_C)²·θ·L·(1 + √M·σ_A/(1 − σ_A))."""
    return (gamma * client_steps) ** 2 * theta * smoothness * (1 + math.sqrt(servers) * sigma / (1 - sigma))


def contraction_factor(client_steps: int, gamma: float, mu: float) -> float:
    """Λ = √(1 − γμT_C)."""
    return math.sqrt(1 - gamma * mu * client_steps)


def lemma4_bound(epoch: np.ndarray, start: float, y0: float, factor: float) -> np.ndarray:
    """(23): ‖w̄_p − w*‖ ≤ Λᵖ·‖w̄₀ − w*‖ + Y₀/(1 − Λ)."""
    return factor**epoch * start + y0 / (1 - factor)


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """Per run: epochs until the servers agree and until their common value settles; measured distances over the bounds
    (a ratio above 1 would refute them); the bound over the trivial one."""
    found: dict[str, list[dict]] = {}
    ours = table.loc[table["split"] == "server", RUN].drop_duplicates()  # methods other than DFL have no servers
    for run, frame in table[table["split"].isin(["", "server"])].merge(ours, on=RUN).groupby(RUN, sort=False):
        wide = frame[(frame["step"] == 0) & (frame["group"] == "")]
        wide = wide.pivot_table(index="round", columns="metric", values="value").sort_index()
        first, last = wide.iloc[0], wide.index[-1]
        size = first["distance_true"]  # ‖w*‖, since w₀ = 0
        gap, apart = wide["gap"].iloc[1:], wide["gap_before"].iloc[1:]
        moved = (wide["distance_mean"] - _limit(wide["distance_mean"])).abs()
        values = {
            "rounds_to_agree": _first_lasting(gap <= AGREED * size),
            "rounds_to_agree_before": _first_lasting(apart <= INDISTINCT * size),
            "rounds_to_settle": _first_lasting(moved <= SETTLED * first["distance_mean"]),
            "relative_gap": (gap / apart.where(apart > 0)).fillna(0.0).max(),
            "spread_at_start": apart.loc[1] / size,
            "spread_at_end": apart.iloc[-1] / size,
            **bounds(wide, client_steps=int(first["client_steps"]), servers=int(first["servers"])),
        }
        for metric, value in values.items():
            at = {"value": float(value), "round": 1 if metric == "spread_at_start" else int(last)}
            found.setdefault(metric, []).append(dict(zip(RUN, run, strict=True), **at))
    return derived_rows(found.items(), table)


def bounds(wide: pd.DataFrame, client_steps: int, servers: int) -> dict[str, float]:
    """From one run's metrics by epoch: the bounds, and the largest ratios measured/bound over the epochs."""
    first, epochs = wide.iloc[0], wide.index.to_numpy()
    theta, gamma, sigma = wide["theta"].max(), first["gamma"], first["sigma_A"]
    one = lemma1_bound(servers, client_steps, theta, gamma, sigma)
    y0 = residual(servers, client_steps, theta, gamma, sigma, first["L"])
    factor = contraction_factor(client_steps, gamma, first["mu"])
    four = lemma4_bound(epochs, first["distance_mean"], y0, factor)
    epsilon = one + y0 / (1 - factor)
    gap, trivial = wide["gap"].max(), theta / first["mu"]
    return {
        "lemma1_ratio": gap / one if one > 0 else (0.0 if gap < 1e-12 else math.inf),
        "lemma4_ratio": (wide["distance_mean"].to_numpy() / four).max(),
        "theorem1_ratio": wide["distance"].iloc[-1] / epsilon,
        "every_epoch_ratio": (wide["distance"].to_numpy() / (one + four)).max(),
        "lemma1_bound": one,
        "lemma4_bound": four[-1],
        "epsilon": epsilon,
        "epsilon_over_trivial": epsilon / trivial,
        "final_distance": wide["distance"].iloc[-1],
    }


def _limit(series: pd.Series) -> float:
    """Limit of a series that converges by a constant factor: Aitken's rule on three points of its last half."""
    x0, x1, x2 = (float(series.iloc[-1 - k]) for k in (len(series) // 4 * 2, len(series) // 4, 0))
    bend = x2 - 2 * x1 + x0
    return x2 if abs(bend) < 1e-12 else x2 - (x2 - x1) ** 2 / bend


def _first_lasting(holds: pd.Series) -> float:
    """The first epoch from which `holds` stays true; infinite if it ends false."""
    if not holds.iloc[-1]:
        return math.inf
    broken = holds.index[~holds]
    return float(holds.index[0] if len(broken) == 0 else holds.index[holds.index.get_loc(broken[-1]) + 1])
