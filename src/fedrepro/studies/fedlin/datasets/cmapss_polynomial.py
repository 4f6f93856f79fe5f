"""C-MAPSS FD001 as polynomial regressions (thesis §3.6.2): the sensors of 100 engines over powers of time.

The first 60 % of an engine's cycles are its training samples, the rest its test samples; cmapss.py says what the file
holds. Shapes: x [n, degree + 1] = (1, t, t², …) with t = (cycle − 1)/299; y [n, sensors · scalings], the columns named
in `facts["outputs"]` ("sensor 2, raw"); client [n] = engine − 1.

The thesis does not say how time or signals are scaled. Time is scaled as in the released code. Signals come in every
scaling that the text or the code could mean, each device by its own numbers:

| scaling | training y | test y |
|---|---|---|
| raw | as in the file | as in the file |
| training z-score | by mean and sd of the training part | by the same |
| training range | to [0, 1] over the training part | by the same |
| own range | to [0, 1] over the training part | to [0, 1] over the test part: what the released code does |
| whole z-score | by mean and sd of the whole series | by the same: a line that the code has commented out |

With `own range` the test targets are not what a model of the training targets could predict: shift and scale differ,
and the rule looks at the test part. A signal that is constant on the part it is scaled by is not divided.
The training part is what it is before a validation set is drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.datasets.cmapss import SENSORS, cmapss, cmapss_size
from fedrepro.data.simulation import check_least, check_name
from fedrepro.data.source import Entry, Source
from fedrepro.data.table_files import pick
from fedrepro.errors import UserError

LAST = 300.0  # the released code's end of time, in cycles


def _as_it_is(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(part.shape[1]), np.ones(part.shape[1])


def _z_score(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return part.mean(0), np.where(np.ptp(part, axis=0) > 0, part.std(0), 1.0)


def _range(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    width = np.ptp(part, axis=0)
    return part.min(0), np.where(width > 0, width, 1.0)


#: scaling → (offset and divisor of a part of the series, the part for training targets, the part for test targets)
SCALINGS: dict[str, tuple[Callable, str, str]] = {
    "raw": (_as_it_is, "train", "train"),
    "training z-score": (_z_score, "train", "train"),
    "training range": (_range, "train", "train"),
    "own range": (_range, "train", "test"),
    "whole z-score": (_z_score, "whole", "whole"),
}


def cmapss_polynomial(
    source: Source,
    *,
    sensors: Sequence[int] = (2, 3, 7, 8),
    degree: int = 6,
    scalings: Sequence[str] = tuple(SCALINGS),
    train: float = 0.6,
) -> Dataset:
    check_least("cmapss_polynomial", 0, degree=degree)
    if not 0 < train < 1:
        raise UserError(f"cmapss_polynomial: train = {train}: must lie between 0 and 1")
    for scaling in scalings:
        check_name("cmapss_polynomial", "scalings", scaling, SCALINGS)
    chosen = pick("cmapss_polynomial", "sensors", list(sensors), len(SENSORS))
    series = cmapss(source)
    time, signals, engine = series.train.x[:, 0], series.train.y[:, chosen], series.train.client
    parts: dict[str, list[tuple]] = {"train": [], "test": []}
    for k in range(engine.max() + 1):
        rows = np.flatnonzero(engine == k)
        cut = int(np.floor(train * len(rows) + 0.5))
        here = {"train": rows[:cut], "test": rows[cut:], "whole": rows}
        if not min(map(len, here.values())):
            raise UserError(f"cmapss_polynomial: train = {train}: engine {k + 1} is left without a part")
        for part, targets in (("train", 1), ("test", 2)):
            columns = []
            for scaling in scalings:
                offset, divisor = SCALINGS[scaling][0](signals[here[SCALINGS[scaling][targets]]])
                columns.append((signals[here[part]] - offset) / divisor)
            parts[part].append((here[part], np.concatenate(columns, axis=1)))
    splits = {}
    for part, found in parts.items():
        rows = np.concatenate([mine for mine, _ in found])
        x = ((time[rows] - 1) / (LAST - 1))[:, None] ** np.arange(degree + 1)
        splits[part] = Split(x, np.concatenate([y for _, y in found]), client=engine[rows])
    names = [f"sensor {s + 1}, {scaling}" for scaling in scalings for s in chosen]
    return Dataset(series.kind, **splits, outputs=len(names), facts={"outputs": np.array(names)}, found=series.found)


def cmapss_polynomial_size(train: float = 0.6, **_) -> tuple[int, int]:
    clients, samples = cmapss_size()
    return clients, round(train * samples)


DATASET = Entry(cmapss_polynomial, seeded=False, size=cmapss_polynomial_size, files="cmapss")
