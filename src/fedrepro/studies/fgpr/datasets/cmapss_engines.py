"""C-MAPSS FD001 (cmapss.py) as in thesis App. C.3: sensor signals over time, scaled on each engine.

Shapes: x [n, 1] = time, y [n, sensors] or [n] for one; client [n] = engine. y has mean 0 and sd 1 (divisor n − 1) on
every engine, over its whole series, test part included: "the outputs on each device are scaled to be a mean 0 and
variance 1 sequence". The scale of time is not stated: `hundreds` of cycles, or the share of the engine's `life`, known
only after its failure. facts: sensors and their names.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.datasets.cmapss import cmapss, cmapss_size
from fedrepro.data.simulation import check_name

TIMES = ("hundreds", "life")


def cmapss_engines(source: Source, *, sensors: int | Sequence[int] = (2, 7), time: str = "hundreds") -> Dataset:
    check_name("cmapss_engines", "time", time, TIMES)
    data = cmapss(source, sensors=sensors)
    engine: Any = data.train.client
    x, y = data.train.x / 100, data.train.y.astype(np.float64)
    for k in range(engine.max() + 1):
        own = engine == k
        sd = y[own].std(axis=0, ddof=1)
        y[own] = (y[own] - y[own].mean(axis=0)) / np.where(sd > 0, sd, 1.0)
        if time == "life":
            x[own] /= x[own].max()
    return replace(data, train=Split(x, y, client=engine))


DATASET = Entry(cmapss_engines, seeded=False, size=lambda **_: cmapss_size(), files="cmapss")
