"""NASA C-MAPSS FD001 (Saxena and Goebel, 2008): the sensors of 100 simulated turbofan engines, each run until it fails.

Shapes: train x [n, 1] = cycle (1, 2, … in every engine), y [n, 21] = the sensors, or [n, chosen] with `sensors`, or [n]
for one sensor; client [n] = engine − 1. n = 20,631, engine after engine in the order of time. Everything is raw:
scaling needs the rows a study trains on. `facts`: numbers and names of the sensors. The file's 26 columns are engine,
cycle, three settings and 21 sensors (sensor s is column s + 5). In FD001 the sensors 1, 5, 10, 16, 18 and 19 never
change, and 6 takes two values.

Only train_FD001.txt is read. The thesis "Federated Data Analytics" (2023) predicts signals, not lives: §3.6.2 trains on
the first 60 % of each of 100 engines' series and tests on the rest (polynomials of degree 6; sensors 2, 3, 7, 8; its
"24 sensors" are these 21 and the three settings); §C.3 takes 60 engines for training and 40 for testing, with series
cut in halves at random and standardised per engine (sensors 2 and 7). Both cut series that run to failure; those of
test_FD001.txt stop earlier.

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
from fedrepro.data.table_files import as_numbers, expect_rows, pick, read_cells, targets
from fedrepro.errors import UserError

ENGINES, ROWS = 100, 20631
#: sensor (Saxena et al. 2008, Table 2: temperatures T, pressures P, speeds N, flows W at the stations of the engine, …)
#: → in the stand-in: level of a new engine, change until it fails, its spread over engines, noise (all assumed, of the
#: size seen in the real file), decimals
LAWS = {
    "T2": (518.67, 0, 0, 0, 2),
    "T24": (642.2, 1.4, 0, 0.3, 2),
    "T30": (1586.0, 16.0, 0, 4.0, 2),
    "T50": (1400.0, 27.0, 0, 4.0, 2),
    "P2": (14.62, 0, 0, 0, 2),
    "P15": (21.609, 0, 0, 0.002, 2),
    "P30": (554.2, -2.6, 0, 0.4, 2),
    "Nf": (2388.04, 0.18, 0, 0.03, 2),
    "Nc": (9056.0, 40.0, 50.0, 4.2, 2),
    "epr": (1.3, 0, 0, 0, 2),
    "Ps30": (47.3, 0.8, 0, 0.1, 2),
    "phi": (522.1, -2.2, 0, 0.3, 2),
    "NRf": (2388.04, 0.18, 0, 0.03, 2),
    "NRc": (8137.0, 28.0, 45.0, 3.1, 2),
    "BPR": (8.41, 0.105, 0, 0.02, 4),
    "farB": (0.03, 0, 0, 0, 2),
    "htBleed": (391.9, 4.1, 0, 0.9, 0),
    "Nf_dmd": (2388.0, 0, 0, 0, 0),
    "PCNfR_dmd": (100.0, 0, 0, 0, 2),
    "W31": (38.97, -0.5, 0, 0.1, 2),
    "W32": (23.38, -0.3, 0, 0.06, 4),
}
SENSORS = tuple(LAWS)
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
        where = f"{path}: line {row + 1}: engine {engine[row]:g}, cycle {cycle[row]:g} {before}"
        raise UserError(f"{where}: engines and their cycles must count 1, 2, … without a gap")
    expect_rows(path, len(table), ROWS)
    return table


def degradation(rng: np.random.Generator, engines: int) -> np.ndarray:
    """The stand-in, [n, 26]: engines that wear out, each at its own rate.

    Engine k lives L_k cycles, 128 to 362 as in the real file. Its damage grows from the initial wear w_k to 1:

        D_k(t) = w_k + (1 − w_k) (exp(r_k t / L_k) − 1) / (exp(r_k) − 1)

    A sensor reads level + change · D_k(t) + noise, rounded as in the file. Two speeds (sensors 9 and 14) change by a
    different amount in each engine, up or down. Setting 3 and six sensors are constant, as in the file.
    """
    # assumed: a gamma law with the mean and spread of the real lives (206 and 46)
    lives = np.minimum(128 + rng.gamma(2.9, 27.0, engines).astype(int), 362)
    rates = rng.uniform(3.0, 6.0, engines)
    wear = rng.beta(2.0, 8.0, engines)
    of = np.repeat(np.arange(engines), lives)
    cycle = np.concatenate([np.arange(1, life + 1) for life in lives])
    grown = np.expm1(rates[of] * cycle / lives[of]) / np.expm1(rates[of])
    damage = wear[of] + (1 - wear[of]) * grown
    settings = [
        np.round(rng.normal(0, 0.0022, len(of)), 4),
        rng.integers(-6, 7, len(of)) / 1e4,
        np.full(len(of), 100.0),
    ]
    sensors = []
    for level, change, spread, noise, decimals in LAWS.values():
        change_of = change + spread * rng.standard_normal(engines)
        sensors.append(np.round(level + change_of[of] * damage + noise * rng.standard_normal(len(of)), decimals))
    return np.column_stack([of + 1, cycle, *settings, *sensors])


def cmapss_size(**_: Any) -> tuple[int, int]:
    return ENGINES, ROWS


DATASET = Entry(cmapss, seeded=False, size=cmapss_size, files="cmapss")
