"""A simulated seven-joint arm: joint torques by recursive Newton–Euler (Luh, Walker and Paul, 1980), in the frames of
Craig, Introduction to Robotics, ch. 3 and 6 (modified Denavit–Hartenberg: frame i turns with link i about its own z).

Outwards from the base, with R the rotation from frame i to frame i − 1 and p the origin of frame i in frame i − 1
(both of joint i), ω, ω̇ and a of link i − 1, and z = (0, 0, 1):

    ω_i = Rᵀω + q̇ z,   ω̇_i = Rᵀω̇ + Rᵀω × q̇ z + q̈ z,   a_i = Rᵀ(a + ω̇ × p + ω × (ω × p))

from ω = ω̇ = 0 and a = −gravity at the base. Then inwards from f = n = 0 at the tip, with c_i the centre of mass of
link i, R and p those of joint i + 1, f and n those of link i + 1:

    F = m_i (a_i + ω̇_i × c_i + ω_i × (ω_i × c_i)),   N = I_i ω̇_i + ω_i × I_i ω_i
    f_i = F + R f,   n_i = N + c_i × F + R n + p × R f,   τ_i = z · n_i

All samples are computed at once: q, q̇, q̈ and τ are [n, joints]. The arm's build and movements are assumed: a shoulder
of three joints, an elbow, a wrist of three, the first axis horizontal, angles and speeds as large as those of SARCOS.
The torques lack the real arm's friction, hydraulics and elastic parts.
"""

from dataclasses import dataclass

import numpy as np


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
    """Positions, velocities, accelerations and torques, [train, 28] and [test, 28]: one movement in order of time, of
    which random rows are the test set."""
    n = train + test
    x = movement(rng, _STEP * np.arange(n))
    τ = ARM.torques(*x)
    τ += _NOISE * τ.std(0) * rng.standard_normal(τ.shape)
    table = np.column_stack([*x, τ])
    held_out = np.zeros(n, dtype=bool)
    held_out[rng.choice(n, test, replace=False)] = True
    return table[~held_out], table[held_out]
