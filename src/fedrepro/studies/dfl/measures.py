"""DFL: the bounds of Lemmas 1 to 4 and Theorem 1, measures of the runs against them, and distances at equal messages.

All servers start from one model, so ‖W₀ − 1w̄₀ᵀ‖ = 0 and its terms are left out of the bounds below. Theorem 1 is about
the limit of a run, which is known exactly (fedrepro.studies.dfl.epoch_map); the lemmas hold at every epoch and there.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import RUN, derived_rows
from fedrepro.studies.dfl.epoch_map import INDISTINCT, SETTLED

AGREED = 1e-3  # of ‖w*‖
BUDGET = 4400  # vectors that a server sends and receives: 40 epochs of the simulated system


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


def lemma3_bound(client_steps: int, theta: float, gamma: float) -> float:
    """(21): a client's model moves by at most γ·T_C·θ within an epoch."""
    return gamma * client_steps * theta


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """Per run: epochs until the servers agree and until their common value settles; measured distances over the bounds
    (a ratio above 1 would refute them); the bound over the trivial one; the distance at BUDGET."""
    found: dict[str, list[dict]] = {}
    ours = table.loc[table["split"] == "server", RUN].drop_duplicates()  # other methods have no servers
    for run, frame in table[table["split"].isin(["", "server"])].merge(ours, on=RUN).groupby(RUN, sort=False):
        wide = frame[(frame["step"] == 0) & (frame["group"] == "")]
        wide = wide.pivot_table(index="round", columns="metric", values="value").sort_index()
        for metric, value, epoch in (*_of_dfl(wide), *_at_budget(wide)):
            found.setdefault(metric, []).append(dict(zip(RUN, run, strict=True), value=float(value), round=epoch))
    return derived_rows(found.items(), table)


def _of_dfl(wide: pd.DataFrame) -> Iterator[tuple[str, float, int]]:
    """(measure, value, epoch) of a run of DFL on least squares; nothing of others."""
    if not {"sigma_A", "gap_before"} <= set(wide):
        return
    first, last = wide.iloc[0], int(wide.index[-1])
    gap, apart = wide["gap"].iloc[1:], wide["gap_before"].iloc[1:]
    yield "relative_gap", (gap / apart.where(apart > 0)).fillna(0.0).max(), last
    if "distance_true" in wide:
        size = first["distance_true"]  # ‖w*‖, since w₀ = 0
        yield "rounds_to_agree", _first_lasting(gap <= AGREED * size), last
        yield "rounds_to_agree_before", _first_lasting(apart <= INDISTINCT * size), last
        yield "spread_at_start", apart.iloc[0] / size, 1
        yield "spread_at_end", apart.iloc[-1] / size, last
    if "limit_mean" in wide:
        moved = (wide["distance_mean"] - first["limit_mean"]).abs()
        yield "rounds_to_settle", _first_lasting(moved <= SETTLED * first["distance_mean"]), last
    for metric, value in bounds(wide, int(first["client_steps"]), int(first["servers"])).items():
        yield metric, value, last


def bounds(wide: pd.DataFrame, client_steps: int, servers: int) -> dict[str, float]:
    """From one run's metrics by epoch: the bounds, and the largest ratios measured/bound over the epochs and, where it
    is known, the limit."""
    first, epochs = wide.iloc[0], wide.index.to_numpy()
    gamma, sigma, limit = first["gamma"], first["sigma_A"], "limit_distance" in wide
    theta = max(wide["theta"].max(), first.get("limit_theta", 0.0))
    one = lemma1_bound(servers, client_steps, theta, gamma, sigma)
    y0 = residual(servers, client_steps, theta, gamma, sigma, first["L"])
    factor = contraction_factor(client_steps, gamma, first["mu"])
    four = lemma4_bound(epochs, first["distance_mean"], y0, factor)
    epsilon = one + y0 / (1 - factor)
    gap, trivial = max(wide["gap"].max(), first.get("limit_gap", 0.0)), theta / first["mu"]
    mean = first.get("limit_mean", 0.0) / (y0 / (1 - factor))
    found = {
        "lemma1_ratio": gap / one if one > 0 else (0.0 if gap < 1e-12 else math.inf),
        "lemma3_ratio": wide["drift"].max() / lemma3_bound(client_steps, theta, gamma),
        "lemma4_ratio": max((wide["distance_mean"].to_numpy() / four).max(), mean),
        "every_epoch_ratio": (wide["distance"].to_numpy() / (one + four)).max(),
        "lemma1_bound": one,
        "lemma3_bound": lemma3_bound(client_steps, theta, gamma),
        "lemma4_bound": y0 / (1 - factor),
        "epsilon": epsilon,
        "epsilon_over_trivial": epsilon / trivial,
        "final_distance": wide["distance"].iloc[-1],
        "largest_drift": wide["drift"].max(),
    }
    if limit:
        found |= {"lemma2_ratio": first["contraction_ratio"], "theorem1_ratio": first["limit_distance"] / epsilon}
    return found


def _at_budget(wide: pd.DataFrame) -> Iterator[tuple[str, float, int]]:
    """The distance from the minimiser at the last round within BUDGET, of runs that are long enough."""
    if not {"messages", "distance"} <= set(wide):
        return
    last = int(BUDGET // wide["messages"].iloc[0])
    if last in wide.index:
        yield "distance_at_budget", wide["distance"][last], last


def _first_lasting(holds: pd.Series) -> float:
    """The first epoch from which `holds` stays true; infinite if it ends false."""
    if not holds.iloc[-1]:
        return math.inf
    broken = holds.index[~holds]
    return float(holds.index[0] if len(broken) == 0 else holds.index[holds.index.get_loc(broken[-1]) + 1])
