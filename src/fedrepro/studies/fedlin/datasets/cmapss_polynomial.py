"""C-MAPSS FD001 as polynomial regressions (thesis §3.6.2): the sensors of 100 engines over powers of time.

The first 60 % of an engine's cycles are its training samples, the rest its test samples; cmapss.py describes the file.
Shapes: x [n, degree + 1] = (1, t, t², …) with t = (cycle − 1)/299, as in the released code; y [n, sensors · scalings],
the columns named in `facts["outputs"]` ("sensor 2, raw"); client [n] = engine − 1.

The thesis does not say how signals are scaled: they come in every scaling that text or code could mean, per device.

| scaling | training y | test y |
|---|---|---|
| raw | as in the file | as in the file |
| training z-score | by mean and sd of the training part | by the same |
| training range | to [0, 1] over the training part | by the same |
| own range | to [0, 1] over the training part | to [0, 1] over the test part: the released code |
| whole z-score | by mean and sd of the whole series | by the same: commented out in the code |

With `own range` no model of the training targets can predict the test targets: shift and scale differ, and they depend
on the test part. A signal that is constant on the part it is scaled by is not divided. The training part includes the
samples that are drawn for validation later.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.datasets.cmapss import SENSORS, cmapss, cmapss_size
from fedrepro.data.simulation import check_least, check_name
from fedrepro.data.table_files import pick
from fedrepro.errors import UserError

LAST = 300.0  # the released code's end of time, in cycles


#: offset and divisor from a part of the series
BY: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "raw": lambda part: (np.zeros(part.shape[1]), np.ones(part.shape[1])),
    "z-score": lambda part: (part.mean(0), part.std(0)),
    "range": lambda part: (part.min(0), np.ptp(part, axis=0)),
}
#: scaling → its offset and divisor, the part for training targets, the part for test targets
SCALINGS = {
    "raw": (BY["raw"], "train", "train"),
    "training z-score": (BY["z-score"], "train", "train"),
    "training range": (BY["range"], "train", "train"),
    "own range": (BY["range"], "train", "test"),
    "whole z-score": (BY["z-score"], "whole", "whole"),
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
    assert engine is not None  # every sample of C-MAPSS has its engine
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"train": [], "test": []}
    for k in range(engine.max() + 1):
        rows = np.flatnonzero(engine == k)
        cut = int(np.floor(train * len(rows) + 0.5))
        here = {"train": rows[:cut], "test": rows[cut:], "whole": rows}
        if not min(map(len, here.values())):
            raise UserError(f"cmapss_polynomial: train = {train}: engine {k + 1} is left without a part")
        for targets, part in enumerate(parts):
            columns = []
            for scale, *by in (SCALINGS[scaling] for scaling in scalings):
                base = signals[here[by[targets]]]
                offset, divisor = scale(base)
                columns.append((signals[here[part]] - offset) / np.where(np.ptp(base, axis=0) > 0, divisor, 1.0))
            parts[part].append((here[part], np.concatenate(columns, axis=1)))
    splits = {}
    for part, found in parts.items():
        rows = np.concatenate([mine for mine, _ in found])
        x = ((time[rows] - 1) / (LAST - 1))[:, None] ** np.arange(degree + 1)
        splits[part] = Split(x, np.concatenate([y for _, y in found]), client=engine[rows])
    names = [f"sensor {s + 1}, {scaling}" for scaling in scalings for s in chosen]
    facts = {"outputs": np.array(names)}
    return Dataset(series.kind, splits["train"], splits["test"], outputs=len(names), facts=facts, found=series.found)


def cmapss_polynomial_size(train: float = 0.6, **_: object) -> tuple[int, int]:
    clients, samples = cmapss_size()
    return clients, round(train * samples)


DATASET = Entry(cmapss_polynomial, seeded=False, size=cmapss_polynomial_size, files="cmapss")
