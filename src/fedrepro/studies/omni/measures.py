"""Omni-Fedge: accuracies at the end, rounds to an accuracy, the weights ω and the nodes' labels, terms of the PAC bound
(Theorem 1); and of each arm those of the step that was best on validation data, seed by seed, as `chosen_…`."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.metrics import rank_correlation
from fedrepro.evidence.tables import RUN, derived_rows, final, rows

TARGETS = {"rounds_to_80": 0.80, "rounds_to_85": 0.85, "rounds_to_90": 0.90}
LAST = 0.2  # of the rounds: ω is averaged over these
DELTA = 0.05  # of Theorem 1; assumed: the paper names no value
EXCHANGES = 3  # with the server per round of Omni-Fedge: heads, losses, gradients (Algorithm 1, steps 6, 7, 11)


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """The measures of every run, and those of the chosen ones again."""
    runs = pd.DataFrame([*curves(table), *weighted(table)])
    best = runs.merge(choose(table), on=RUN)
    both = pd.concat([runs, best.assign(metric="chosen_" + best["metric"])])
    return derived_rows(both.groupby("metric", sort=False), table)


def choose(table: pd.DataFrame) -> pd.DataFrame:
    """The run of each algorithm and seed with the highest validation accuracy at its end; of equal ones that with the
    least validation loss. Diverged runs are no candidates."""
    sound = table[~table["diverged"]]
    ends = [final(sound, metric, split="validation", client=-1)[[*RUN, "value"]] for metric in ("accuracy", "loss")]
    both = ends[0].merge(ends[1], on=RUN, suffixes=("", "_loss"))
    best_first = both.sort_values(["value", "value_loss"], ascending=[False, True], kind="stable")
    return best_first.drop_duplicates(["algorithm", "seed"])[RUN]


def curves(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Rounds to 80, 85 and 90 % (exchanges_to_80: times the exchanges per round); training and test accuracy at the end
    and their difference; the training loss at the end as a share of that at the start."""
    for run, frame in rows(table, "accuracy", client=-1).groupby(RUN, sort=False):
        curve = frame.pivot_table(index="round", columns="split", values="value")
        train, test = (float(curve[split].iloc[-1]) for split in ("train", "test"))
        values = {"train_accuracy": train, "test_accuracy": test, "generalisation_gap": train - test}
        exchanges = EXCHANGES if str(run[0]).startswith("omni_fedge") else 1
        for metric, target in TARGETS.items():
            values[metric] = rounds_to(curve["test"], target)
        values["exchanges_to_80"] = exchanges * values["rounds_to_80"]
        yield from _lines(run, int(curve.index[-1]), values)
    losses = rows(table, "loss", split="train", client=-1).sort_values("round", kind="stable")
    for run, frame in losses.groupby(RUN, sort=False):
        ratio = frame["value"].iloc[-1] / frame["value"].iloc[0]
        yield from _lines(run, int(frame["round"].iloc[-1]), {"loss_ratio": float(ratio)})


def weighted(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Properties of ω, the objective (2) and the deviation terms, for the runs with weights from losses."""
    sizes = rows(table, "samples", split="train").set_index(RUN).sort_index()
    for run, frame in table[table["metric"].isin(["omega", "overlap", "cross_loss"])].groupby(RUN, sort=False):
        if not (frame["metric"] == "omega").any():
            continue
        omega, losses = late(frame, "omega"), late(frame, "cross_loss")
        values = weights(omega, square(rows(frame, "overlap", round=0)))
        values["objective"] = float((omega * losses - np.log(omega)).sum(axis=1).mean())
        printed, corrected = deviation_terms(omega, sizes.loc[[run]].sort_values("client")["value"].to_numpy())
        values |= {"deviation_printed": printed, "deviation_corrected": corrected}
        yield from _lines(run, int(frame["round"].max()), values)


def _lines(run: Any, round: int, values: dict[str, float]) -> Iterator[dict[str, Any]]:
    about = dict(zip(RUN, run, strict=True))
    return ({**about, "round": round, "metric": metric, "value": value} for metric, value in values.items())


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
