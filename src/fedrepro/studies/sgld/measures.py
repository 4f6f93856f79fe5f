"""Federated SGLD: ends and roughness of the loss curves, the privacy account, the contraction of coupled runs.

- late_loss: mean training loss over the last tenth of the rounds (of those evaluated).
- generalisation_gap: the same of the test loss, minus late_loss.
- roughness: of the training loss over the last two thirds of the rounds (fedrepro.evidence.roughness).
- epsilon_smallest_node, …_median_node, …_largest_node: ε(δ) after the run (privacy.py), for the nodes with least,
  median and most data; epsilon_each_record: for the median node, if each record's gradient were clipped instead.
- contraction_first, contraction_second: −log of the factor per round by which the distance of coupled runs changes,
  over the first and the second half of the run; distance_left: the last distance over the first.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedrepro.evidence.roughness import roughness
from fedrepro.evidence.tables import RUN, derived_rows
from fedrepro.studies.sgld.privacy import EACH_RECORD, WHOLE_BATCH, epsilon, noise_multipliers, sensitivity

DELTA = 1e-5  # assumed: the paper gives no δ; below 1/n of every node
LATE = 0.1


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """All measures above that the table's runs allow."""
    found: dict[str, list[dict]] = {}
    for run, frame in table.groupby(RUN, sort=False):
        last = int(frame["round"].max())
        for metric, value in (*_curve(frame), *_account(frame, last), *_contraction(frame)):
            found.setdefault(metric, []).append(dict(zip(RUN, run, strict=True), value=value, round=last))
    return derived_rows(found.items(), table)


def contraction(distances: np.ndarray) -> float:
    """−log of the mean factor from one distance to the next."""
    return float(-math.log(distances[-1] / distances[0]) / (len(distances) - 1))


def _curve(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    keep = (frame["metric"] == "loss") & (frame["client"] == -1)  # the mean over the nodes
    losses, test = (
        frame[keep & (frame["split"] == split)].set_index("round")["value"].sort_index() for split in ("train", "test")
    )
    late = losses.index > (1 - LATE) * losses.index[-1]
    yield "late_loss", float(losses[late].mean())
    if len(test) == len(losses):
        yield "generalisation_gap", float((test - losses)[late].mean())
    if (np.diff(losses.index) == 1).all():
        rough = roughness(losses[losses.index > losses.index[-1] / 3].to_numpy())
        if math.isfinite(rough):
            yield "roughness", rough


def _account(frame: pd.DataFrame, rounds: int) -> Iterator[tuple[str, float]]:
    steps = frame[frame["metric"] == "step_size"].sort_values("step")["value"].to_numpy()
    if not len(steps):
        return
    values = frame.set_index("metric")["value"]
    beta, clip, batch = (float(values[[name]].iloc[0]) for name in ("beta", "clip", "batch"))
    sizes = np.sort(values[["samples"]].to_numpy())
    nodes = {"smallest": sizes[0], "median": sizes[len(sizes) // 2], "largest": sizes[-1]}
    multipliers = noise_multipliers(steps, beta, sensitivity(clip, batch, WHOLE_BATCH))
    yield "noise_multiplier", float(np.mean(multipliers))
    for name, size in nodes.items():
        yield f"epsilon_{name}_node", epsilon(multipliers, min(1.0, batch / size), rounds, DELTA)
    multipliers = noise_multipliers(steps, beta, sensitivity(clip, batch, EACH_RECORD))
    yield "epsilon_each_record", epsilon(multipliers, min(1.0, batch / nodes["median"]), rounds, DELTA)


def _contraction(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    distances = frame[frame["metric"] == "distance"].sort_values("round")["value"].to_numpy()
    if len(distances) < 3 or distances.min() <= 0:
        return
    middle = len(distances) // 2
    yield "contraction_first", contraction(distances[: middle + 1])
    yield "contraction_second", contraction(distances[middle:])
    yield "distance_left", float(distances[-1] / distances[0])
