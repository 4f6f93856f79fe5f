"""NASA C-MAPSS FD001 (Saxena and Goebel, 2008): the sensors of 100 simulated turbofan engines, each run until it fails.

Shapes: train x [n, 1] = cycle (1, 2, … in every engine), y [n, 21] = the sensors, or [n, chosen] with `sensors`, or [n]
for one sensor; client [n] = engine − 1. n = 20,631, engine after engine in the order of time. Everything is raw:
scaling needs the rows a study trains on. `facts`: numbers and names of the sensors.

The file's 26 columns are engine, cycle, three settings and 21 sensors: sensor s is column s + 5 (from 1). In FD001 the
sensors 1, 5, 10, 16, 18 and 19 never change, and 6 takes two values.

Only train_FD001.txt is read. The thesis "Federated Data Analytics" (2023) predicts signals, not lives: §3.6.2 trains
on the first 60 % of each of 100 engines' series and tests on the rest (polynomials of degree 6 in time; sensors 2, 3,
7, 8); §C.3 takes 60 engines for training and 40 for testing, with series cut in halves at random (sensors 2 and 7,
standardised per engine). Both cut series that run to failure; those of test_FD001.txt stop earlier. The "24 sensors"
of §3.6.2 are these 21 and the three settings.

Cite: A. Saxena, K. Goebel, Turbofan engine degradation simulation data set, NASA Prognostics Data Repository, 2008;
A. Saxena, K. Goebel, D. Simon, N. Eklund, Damage propagation modeling for aircraft engine run-to-failure simulation,
PHM 2008.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.standins.degradation import degradation
from fedrepro.data.table_files import as_numbers, expect_rows, pick, read_cells, targets
from fedrepro.errors import UserError

ENGINES, ROWS = 100, 20631
#: Saxena et al. 2008, Table 2: temperatures T, pressures P, speeds N, flows W at the stations of the engine, …
SENSORS = (
    *("T2", "T24", "T30", "T50", "P2", "P15", "P30", "Nf", "Nc", "epr", "Ps30", "phi", "NRf", "NRc", "BPR", "farB"),
    *("htBleed", "Nf_dmd", "PCNfR_dmd", "W31", "W32"),
)
COLUMNS = ("engine", "cycle", "setting 1", "setting 2", "setting 3", *(f"sensor {s}" for s in range(1, 22)))


def cmapss(source: Source, *, sensors: int | Sequence[int] | None = None) -> Dataset:
    chosen = pick("cmapss", "sensors", sensors, len(SENSORS))
    found = source.find("cmapss")
    table = degradation(source.rng, ENGINES) if found is None else read(found["train_FD001.txt"])
    split = Split(table[:, 1:2], targets(table[:, 5 + chosen]), client=table[:, 0].astype(np.int64) - 1)
    facts = {"sensors": chosen + 1, "sensor_names": np.array(SENSORS)[chosen]}
    return Dataset("standin" if found is None else "real", split, outputs=len(chosen), facts=facts, found=found)


def read(path: Path) -> np.ndarray:
    """The file as numbers [n, 26]; UserError unless engines count 1, 2, … and so do the cycles of each."""
    table = as_numbers(path, read_cells(path, COLUMNS), COLUMNS, first_line=1)
    engine, cycle = table[:, 0], table[:, 1]
    new = np.diff(engine, prepend=0) != 0
    expected = np.where(new, 1, np.append(0, cycle[:-1]) + 1)
    gaps = np.flatnonzero((cycle != expected) | (engine != np.cumsum(new)))
    if len(gaps):
        row = gaps[0]
        before = f"after {engine[row - 1]:g} and {cycle[row - 1]:g}" if row else "at the start"
        raise UserError(
            f"{path}: line {row + 1}: engine {engine[row]:g}, cycle {cycle[row]:g} {before}: "
            "engines and their cycles must count 1, 2, … without a gap"
        )
    expect_rows(path, len(table), ROWS)
    return table


def cmapss_size(**_: Any) -> tuple[int, int]:
    return ENGINES, ROWS


DATASET = Entry(cmapss, seeded=False, size=cmapss_size, files="cmapss")
