"""SARCOS: the inverse dynamics of a seven-joint anthropomorphic robot arm (Vijayakumar and Schaal, 2000).

Shapes: x [n, 21] = 7 joint positions, 7 velocities, 7 accelerations; y [n, 7] = 7 torques, or [n, chosen] with
`outputs` (numbers 1 … 7), or [n] where one is chosen. No clients: the thesis "Federated Data Analytics" (2023, §4.7)
deals the rows out to 25 devices at random and learns outputs 1, 3, 5 and 7, one at a time. Everything is raw.

With both files train has 44,484 rows (sarcos_inv.mat) and test 4,449 (sarcos_inv_test.mat). With the test file alone
(labelled as incomplete), its 4,449 rows are the train split, and the study makes the test split.

The test file is no independent test set: its rows are in order of time, evenly about 0.11 s apart, and their number is
a tenth of the training file's. Public code says it is every tenth row (not verified here without the training file).
`facts["overlap"]` [n_test] marks the test rows that are also training rows. The thesis does not mention it.

`pooled` gives all rows once as the train split and no test split: devices then test on a part of their own rows,
whichever files are present. `standardised`: every column of x and y has mean 0 and sd 1 over the train split (the
thesis' errors of about 0.25 are not in the torques' own units).

Cite: C. E. Rasmussen, C. K. I. Williams, Gaussian processes for machine learning, MIT Press 2006, §2.5; S. Vijayakumar,
S. Schaal, Locally weighted projection regression, ICML 2000.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.table_files import expect_rows, pick, targets
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.robot_arm import robot_arm

INPUTS, TORQUES = 21, 7
#: file → its rows; its variable has the same name
ROWS = {"sarcos_inv": 44484, "sarcos_inv_test": 4449}


def sarcos(
    source: Source, *, outputs: int | Sequence[int] | None = None, pooled: bool = False, standardised: bool = False
) -> Dataset:
    chosen = pick("sarcos", "outputs", outputs, TORQUES)
    found = source.find("sarcos")
    train: Any
    test: Any = None
    if found is None:
        train, test = robot_arm(source.rng, ROWS["sarcos_inv"], ROWS["sarcos_inv_test"])
    elif found.complete:
        train, test = (read(found[f"{name}.mat"]) for name in ROWS)
    else:
        train = read(found["sarcos_inv_test.mat"])
    facts = {"outputs": chosen + 1}
    if pooled and test is not None:
        train, test = np.concatenate([train, test[~overlap(test, train)]]), None
    if test is not None:
        facts["overlap"] = overlap(test, train)
    if standardised:
        mean, sd = train.mean(axis=0), train.std(axis=0, ddof=1)
        train, test = (None if table is None else (table - mean) / sd for table in (train, test))
    kind = "standin" if found is None else "real"
    train, test = (None if t is None else Split(t[:, :INPUTS], targets(t[:, INPUTS + chosen])) for t in (train, test))
    return Dataset(kind, train, test, outputs=len(chosen), facts=facts, found=found)


def read(path: Path) -> np.ndarray:
    """The one variable of a MATLAB file, as numbers [rows, 28]."""
    from scipy.io import loadmat  # importing it is slow, and no other data set needs it

    name = path.stem
    try:
        variables = loadmat(path)
    except Exception as error:  # loadmat raises many types without a common base on a foreign file
        raise UserError(f"{path}: not a readable MATLAB file ({error})".replace("\n", " ")) from None
    if name not in variables:
        inside = ", ".join(key for key in variables if not key.startswith("__")) or "nothing"
        raise UserError(f"{path}: no variable {name} in it, but {inside}")
    table = np.asarray(variables[name])
    if table.ndim != 2 or table.shape[1] != INPUTS + TORQUES or not np.issubdtype(table.dtype, np.floating):
        raise UserError(f"{path}: {name} is {table.dtype} {list(table.shape)}, not numbers [n, {INPUTS + TORQUES}]")
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0] + 1
        raise UserError(f"{path}: row {row}, column {column} is not a finite number")
    expect_rows(path, len(table), ROWS[name])
    return table.astype(np.float64)


def overlap(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of the rows [n] that are also among the others, to the last bit: tables [n, columns] and [m, columns]."""
    known = {row.tobytes() for row in others + 0.0}  # + 0.0 turns −0 into 0
    return np.array([row.tobytes() in known for row in rows + 0.0], dtype=bool)


def sarcos_size(**_: Any) -> tuple[None, int]:
    return None, ROWS["sarcos_inv"]


DATASET = Entry(sarcos, seeded=False, size=sarcos_size, files="sarcos")
