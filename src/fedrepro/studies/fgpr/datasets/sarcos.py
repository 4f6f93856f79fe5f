"""SARCOS: the inverse dynamics of a seven-joint anthropomorphic robot arm (Vijayakumar and Schaal, 2000).

Shapes: x [n, 21] = 7 joint positions, 7 velocities, 7 accelerations; y [n, 7] = 7 torques, or [n, chosen] with
`outputs` (numbers 1 … 7), or [n] where one is chosen. No clients: the thesis "Federated Data Analytics" (2023, §4.7)
deals the rows out to 25 devices at random and learns outputs 1, 3, 5 and 7, one at a time. Everything is raw.

`rows: 48933`, the thesis': train has 44,484 rows (sarcos_inv.mat) and test 4,449 (sarcos_inv_test.mat); where only the
test file is present (labelled as incomplete) these are not the thesis' data, and the stand-in is used. `rows: 4449`:
the test file alone is the train split, and the study makes the test split. By default all that there is.

The test file is no independent test set: its rows are in order of time, evenly about 0.11 s apart, and their number is
a tenth of the training file's. Public code says it is every tenth row (not verified here without the training file).
`facts["overlap"]` [n_test] marks the test rows that are also training rows. The thesis does not mention it.

`pooled` gives all rows once as the train split and no test split: devices then test on a part of their own rows,
whichever files are present. `standardised`: every column of x and y has mean 0 and sd 1 over the train split (the
thesis' errors of about 0.25 are not in the torques' own units).

The stand-in is a simulated arm: torques by recursive Newton–Euler (Luh, Walker and Paul, 1980), in the frames of Craig,
Introduction to Robotics, ch. 3 and 6 (modified Denavit–Hartenberg: frame i turns with link i about its own z). Outwards
from the base, with R the rotation from frame i to frame i − 1 and p the origin of frame i in frame i − 1 (both of joint
i), ω, ω̇ and a of link i − 1, and z = (0, 0, 1):

    ω_i = Rᵀω + q̇ z,   ω̇_i = Rᵀω̇ + Rᵀω × q̇ z + q̈ z,   a_i = Rᵀ(a + ω̇ × p + ω × (ω × p))

from ω = ω̇ = 0 and a = −gravity at the base. Then inwards from f = n = 0 at the tip, with c_i the centre of mass of
link i, R and p those of joint i + 1, f and n those of link i + 1:

    F = m_i (a_i + ω̇_i × c_i + ω_i × (ω_i × c_i)),   N = I_i ω̇_i + ω_i × I_i ω_i
    f_i = F + R f,   n_i = N + c_i × F + R n + p × R f,   τ_i = z · n_i

All samples are computed at once: q, q̇, q̈ and τ are [n, joints]. The arm's build and movements are assumed: a shoulder
of three joints, an elbow, a wrist of three, the first axis horizontal, angles and speeds as large as those of SARCOS.
The torques lack the real arm's friction, hydraulics and elastic parts.

Cite: C. E. Rasmussen, C. K. I. Williams, Gaussian processes for machine learning, MIT Press 2006, §2.5; S. Vijayakumar,
S. Schaal, Locally weighted projection regression, ICML 2000.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.table_files import expect_rows, pick, targets
from fedrepro.errors import UserError

INPUTS, TORQUES = 21, 7
#: file → its rows; its variable has the same name
ROWS = {"sarcos_inv": 44484, "sarcos_inv_test": 4449}


def sarcos(
    source: Source,
    *,
    rows: int | None = None,
    outputs: int | Sequence[int] | None = None,
    pooled: bool = False,
    standardised: bool = False,
) -> Dataset:
    if rows not in (None, sum(ROWS.values()), ROWS["sarcos_inv_test"]):
        raise UserError(f"sarcos: rows = {rows}: 4449 (the test file) or 48933 (both files)")
    all_rows, few = rows == sum(ROWS.values()), rows == ROWS["sarcos_inv_test"]
    chosen = pick("sarcos", "outputs", outputs, TORQUES)
    found = source.find("sarcos")
    if all_rows and found is not None and not found.complete:
        found = None
    train: Any
    test: Any = None
    if found is None:
        train, test = robot_arm(source.rng, ROWS["sarcos_inv"], ROWS["sarcos_inv_test"])
        train, test = (test, None) if few else (train, test)
    elif found.complete and not few:
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


@dataclass(frozen=True)
class Arm:
    """twist, length, offset [joints]: α_{i−1} (rad), a_{i−1} and d_i (m) of joint i; mass [joints] (kg); centre of mass
    [joints, 3] (m) and inertia about it [joints, 3, 3] (kg m²) in the link's frame; gravity [3] (m/s²) in the base's.
    """

    twist: np.ndarray
    length: np.ndarray
    offset: np.ndarray
    mass: np.ndarray
    centre: np.ndarray
    inertia: np.ndarray
    gravity: np.ndarray

    def joint(self, i: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotation [n, 3, 3] and origin [3] of frame i in frame i − 1, at angles q [n] of joint i."""
        sin, cos = np.sin(self.twist[i]), np.cos(self.twist[i])
        s, c, zero = np.sin(q), np.cos(q), np.zeros_like(q)
        rows = [[c, -s, zero], [s * cos, c * cos, zero - sin], [s * sin, c * sin, zero + cos]]
        origin = np.array([self.length[i], -sin * self.offset[i], cos * self.offset[i]])
        return np.moveaxis(np.array(rows), -1, 0), origin

    def torques(self, q: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """τ [n, joints] of this movement, against inertia and gravity; all arguments [n, joints]."""
        joints = [self.joint(i, q[:, i]) for i in range(q.shape[1])]
        ω = dω = np.zeros((len(q), 3))
        a = np.tile(-self.gravity, (len(q), 1))
        force, moment = [], []
        for i, (R, p) in enumerate(joints):
            spin, spin_up = (np.outer(v[:, i], (0, 0, 1)) for v in (velocity, acceleration))
            a = _back(R, a + _swing(ω, dω, p))
            ω, dω = _back(R, ω), _back(R, dω)
            dω = dω + np.cross(ω, spin) + spin_up
            ω = ω + spin
            force.append(self.mass[i] * (a + _swing(ω, dω, self.centre[i])))
            moment.append(dω @ self.inertia[i].T + np.cross(ω, ω @ self.inertia[i].T))
        τ = np.empty_like(q)
        f = n = np.zeros((len(q), 3))
        for i in reversed(range(q.shape[1])):
            n = moment[i] + np.cross(self.centre[i], force[i]) + n
            f = force[i] + f
            τ[:, i] = n[:, 2]
            R, p = joints[i]
            f = _forth(R, f)  # on the link before, in its frame
            n = _forth(R, n) + np.cross(p, f)
        return τ


def _back(R: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("nij,ni->nj", R, v)


def _forth(R: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("nij,nj->ni", R, v)


def _swing(ω: np.ndarray, dω: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Acceleration at r beyond that of the frame's origin."""
    return np.cross(dω, r) + np.cross(ω, np.cross(ω, r))


def _boxes(mass: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Inertia [joints, 3, 3] of boxes of these sizes [joints, 3] about their middle."""
    return np.array([np.diag(m / 12 * (s.sum() - s)) for m, s in zip(mass, size**2, strict=True)])


_MASS = np.array([4.0, 3.0, 8.0, 3.0, 5.0, 1.5, 2.0])
_SIZE = np.array([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.08, 0.08, 0.3], [0.1, 0.1, 0.1], [0.07, 0.07, 0.25],
                  [0.06, 0.06, 0.06], [0.09, 0.04, 0.15]])  # fmt: skip
#: assumed: as long as a human arm and heavier, like a hydraulic one; the axes of the shoulder meet in one point, as do
#: those of the wrist
ARM = Arm(
    twist=np.pi / 2 * np.array([0, 1, -1, 1, -1, 1, -1]),
    length=np.array([0, 0, 0, 0.03, -0.03, 0, 0]),
    offset=np.array([0, 0, 0.3, 0, 0.28, 0, 0]),
    mass=_MASS,
    centre=np.array(
        [[0, 0, 0], [0, 0, 0.02], [0, 0.02, -0.14], [0, 0, 0.02], [0, -0.03, -0.12], [0, 0, 0], [0.05, 0, 0.08]]
    ),
    inertia=_boxes(_MASS, _SIZE),
    gravity=np.array([9.81, 0, 0]),
)
#: middle of the movement and its spread (rad), joint by joint
_MIDDLE = np.array([-0.1, -0.5, 0.0, 1.5, 0.5, -0.3, 0.2])
_SPREAD = np.array([0.3, 0.13, 0.13, 0.23, 0.28, 0.21, 0.18])
_WAVES, _SLOWEST, _FASTEST, _STEP = 12, 0.05, 3.0, 0.01  # waves per joint; Hz; Hz; s between samples
_NOISE = 0.01  # of each torque's own spread


def movement(rng: np.random.Generator, time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, q̇, q̈ [n, 7] at times [n]: a sum of waves per joint, slow ones wide and fast ones narrow."""
    joints = len(_MIDDLE)
    frequency = 2 * np.pi * np.exp(rng.uniform(np.log(_SLOWEST), np.log(_FASTEST), (_WAVES, joints)))
    phase = rng.uniform(0, 2 * np.pi, (_WAVES, joints))
    amplitude = frequency**-0.5
    amplitude *= _SPREAD / np.sqrt((amplitude**2).sum(0) / 2)
    q, velocity, acceleration = np.zeros((3, len(time), joints))
    for w, φ, A in zip(frequency, phase, amplitude, strict=True):
        angle = np.outer(time, w) + φ
        sin, cos = np.sin(angle), np.cos(angle)
        q += A * sin
        velocity += A * w * cos
        acceleration -= A * w**2 * sin
    return _MIDDLE + q, velocity, acceleration


def robot_arm(rng: np.random.Generator, train: int, test: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables [train, 28] and [test, 28]: one movement in order of time, of which random rows are the test set."""
    n = train + test
    x = movement(rng, _STEP * np.arange(n))
    τ = ARM.torques(*x)
    τ += _NOISE * τ.std(0) * rng.standard_normal(τ.shape)
    table = np.column_stack([*x, τ])
    held_out = np.zeros(n, dtype=bool)
    held_out[rng.choice(n, test, replace=False)] = True
    return table[~held_out], table[held_out]


def sarcos_size(rows: int | None = None, **_: Any) -> tuple[None, int]:
    return None, ROWS["sarcos_inv_test" if rows == ROWS["sarcos_inv_test"] else "sarcos_inv"]


DATASET = Entry(sarcos, seeded=False, size=sarcos_size, files="sarcos")
