"""Omni-Fedge: rounds to an accuracy, the weights ω and the nodes' labels, and terms of the PAC bound (Theorem 1)."""

import math
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.metrics import rank_correlation
from fedrepro.evidence.tables import RUN, derived_rows, rows

ACCURACIES = (80, 85, 90)
LAST = 0.2  # of the rounds: ω of single mini-batches is averaged over these
DELTA = 0.05  # of Theorem 1; assumed: the paper names no value


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """Per run: rounds to 80, 85 and 90 %, best accuracy, generalisation_gap (training minus test accuracy at the end),
    and properties of ω for the methods that have it."""
    found: dict[str, list[dict[str, Any]]] = {}

    def add(run: tuple[Any, ...], round: int, values: dict[str, float]) -> None:
        for metric, value in values.items():
            found.setdefault(metric, []).append({**dict(zip(RUN, run, strict=True)), "value": value, "round": round})

    for run, frame in rows(table, "accuracy", client=-1).groupby(RUN, sort=False):
        curves = frame.pivot_table(index="round", columns="split", values="value")
        first = {f"rounds_to_{percent}": rounds_to(curves["test"], percent / 100) for percent in ACCURACIES}
        gap = (curves["train"] - curves["test"]).iloc[-1]
        values = {"best_accuracy": float(curves["test"].max()), "generalisation_gap": float(gap)}
        add(run, int(curves.index[-1]), {**first, **values})
    sizes = rows(table, "samples", split="train").set_index(RUN)
    for run, frame in table[table["metric"].isin(["omega", "overlap", "cross_loss"])].groupby(RUN, sort=False):
        omega, losses = late(frame, "omega"), late(frame, "cross_loss")
        values = weights(omega, square(rows(frame, "overlap", round=0)))
        values["objective"] = float((omega * losses - np.log(omega)).sum(axis=1).mean())
        printed, corrected = deviation_terms(omega, sizes.loc[[run]].sort_values("client")["value"].to_numpy())
        add(run, int(frame["round"].max()), {**values, "deviation_printed": printed, "deviation_corrected": corrected})
    return derived_rows(found.items(), table)


def rounds_to(curve: pd.Series, target: float) -> float:
    """The first evaluated round at or above the target; one more than the last if it is never reached."""
    reached = curve.index[curve >= target]
    return float(reached[0]) if len(reached) else float(curve.index[-1] + 1)


def late(frame: pd.DataFrame, metric: str) -> np.ndarray:
    """A matrix [i, j] averaged over the last rounds."""
    mine = rows(frame, metric)
    return square(mine[mine["round"] > (1 - LAST) * mine["round"].max()])


def square(frame: pd.DataFrame) -> np.ndarray:
    """A matrix [i, j] from rows with i as client and j as step, averaged over rounds."""
    matrix: np.ndarray = frame.pivot_table(index="client", columns="step", values="value").to_numpy()
    return matrix


def weights(omega: np.ndarray, overlap: np.ndarray) -> dict[str, float]:
    """Inequality of ω_ij over j (largest over smallest; with and without the node itself), and its rank correlation
    with the overlap of the label distributions Σ_c min(p_i(c), p_j(c)), over the pairs of different nodes."""
    others = ~np.eye(len(omega), dtype=bool)
    apart = omega[others].reshape(len(omega), -1)
    alike = rank_correlation(overlap[others].tolist(), omega[others].tolist()) if len(omega) > 2 else math.nan
    return {
        "omega_ratio": float((omega.max(axis=1) / omega.min(axis=1)).max()),
        "omega_ratio_others": float((apart.max(axis=1) / apart.min(axis=1)).max()),
        "omega_own_over_others": float(np.mean(np.diag(omega) / apart.mean(axis=1))),
        "omega_overlap": alike,
    }


def deviation_terms(omega: np.ndarray, sizes: np.ndarray) -> tuple[float, float]:
    """The last term of Theorem 1 over l_max, for the worst node: √(Σ_j ω_ij²/(2n_j²) log 1/δ) as printed, and with n_j
    in place of n_j², as McDiarmid's inequality has it: n_j samples each change the sum by at most ω_ij l_max/n_j."""
    term = [np.sqrt((omega**2 / (2 * sizes**power)).sum(axis=1) * math.log(1 / DELTA)).max() for power in (2, 1)]
    return float(term[0]), float(term[1])
