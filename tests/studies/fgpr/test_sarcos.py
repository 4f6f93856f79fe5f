"""SARCOS: its two layouts, wrong files, and the mechanics of the simulated arm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.io import savemat

from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.datasets.sarcos import ARM, Arm, movement, overlap, robot_arm, sarcos, sarcos_size
from tests.unit.data.real_files import unverified

JOINTS = 7


def rows(n: int, start: int = 0) -> np.ndarray:
    """Column c (from 1) of row i reads 100 (start + i) + c."""
    return 100.0 * (start + np.arange(n))[:, None] + np.arange(1, 29)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """source(sarcos_inv_test=…, sarcos_inv=…): uses these variables as the real files, with 6 and 3 rows."""
    monkeypatch.setitem(sarcos.__globals__, "ROWS", {"sarcos_inv": 6, "sarcos_inv_test": 3})
    (tmp_path / "sarcos").mkdir()

    def make(**tables) -> Source:
        for name, table in tables.items():
            savemat(tmp_path / "sarcos" / f"{name}.mat", {name: table})
        return unverified(monkeypatch, "sarcos", tmp_path)

    return make


# --- the files --------------------------------------------------------------------------------------------------------


def test_both_files_are_train_and_test(source):
    data = sarcos(source(sarcos_inv=rows(6), sarcos_inv_test=rows(3, 6)))
    assert data.kind == "real"
    assert data.found.complete
    assert np.array_equal(data.train.x, rows(6)[:, :21])
    assert np.array_equal(data.train.y, rows(6)[:, 21:])
    assert np.array_equal(data.test.x, rows(3, 6)[:, :21])
    assert data.outputs == 7
    assert not data.facts["overlap"].any()


def test_the_test_file_alone_is_all_there_is_to_train_on(source):
    data = sarcos(source(sarcos_inv_test=rows(3)))
    assert not data.found.complete
    assert np.array_equal(data.train.x, rows(3)[:, :21])
    assert data.test is None
    assert "overlap" not in data.facts


def test_the_thesis_data_need_both_files(source):
    """All 6 + 3 rows without the training file are the stand-in; 3 rows are those of the test file alone."""
    alone = source(sarcos_inv_test=rows(3))
    assert sarcos(alone, rows=9).kind == "standin"
    assert len(sarcos(alone, rows=3).train) == 3
    complete = source(sarcos_inv=rows(6), sarcos_inv_test=rows(3, 6))
    assert [len(split) for split in sarcos(complete, rows=9).splits().values()] == [6, 3]
    only = sarcos(complete, rows=3)
    assert (only.kind, len(only.train), only.test) == ("real", 3, None)
    assert (sarcos_size(rows=3), sarcos_size()) == ((None, 3), (None, 6))
    with pytest.raises(UserError, match="rows = 5"):
        sarcos(complete, rows=5)


def test_chosen_torques(source):
    where = source(sarcos_inv_test=rows(3))
    assert sarcos(where, outputs=[7, 1]).train.y.tolist() == [[28, 22], [128, 122], [228, 222]]
    assert sarcos(where, outputs=3).train.y.tolist() == [24, 124, 224]
    assert sarcos(where, outputs=3).facts["outputs"].tolist() == [3]
    with pytest.raises(UserError, match=r"sarcos: outputs = 8: must be whole numbers from 1 to 7"):
        sarcos(where, outputs=8)


def test_overlap_finds_rows_that_are_equal_in_every_column():
    table, other = rows(4), rows(4, 2)
    other[0, 27] += 1e-12 * other[0, 27]  # one torque of table[2] differs
    assert overlap(table, other).tolist() == [False, False, False, True]
    assert overlap(other, table).tolist() == [False, True, False, False]
    assert overlap(np.array([[0.0]]), np.array([[-0.0]])).tolist() == [True]


def test_rows_in_both_files_are_told(source):
    where = source(sarcos_inv=rows(6), sarcos_inv_test=rows(3, 4))
    told = sarcos(where)
    assert told.facts["overlap"].tolist() == [True, True, False]
    assert len(told.train) == 6


def with_nan() -> np.ndarray:
    table = rows(3)
    table[1, 22] = np.nan
    return table


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (rows(3)[:, :27], r"sarcos_inv_test is float64 \[3, 27\], not numbers \[n, 28\]"),
        (np.zeros((3, 28, 2)), r"sarcos_inv_test is float64 \[3, 28, 2\], not numbers"),
        (np.array([["a"] * 28] * 3, dtype=object), r"sarcos_inv_test is object \[3, 28\], not numbers"),
        (with_nan(), r"row 2, column 23 is not a finite number"),
        (rows(2), r"2 rows, not 3 \(cut off\?\)"),
        (rows(4), r"4 rows, not 3$"),
    ],
)
def test_a_wrong_table_is_named(source, table, said):
    with pytest.raises(UserError, match=rf"sarcos_inv_test\.mat: {said}"):
        sarcos(source(sarcos_inv_test=table))


def test_a_file_without_the_variable_is_named(source, tmp_path):
    where = source(sarcos_inv_test=rows(3))
    savemat(tmp_path / "sarcos" / "sarcos_inv_test.mat", {"sarcos_inv": rows(3)})
    with pytest.raises(UserError, match=r"sarcos_inv_test\.mat: no variable sarcos_inv_test in it, but sarcos_inv"):
        sarcos(where)


@pytest.mark.parametrize("spoil", [lambda b: b[: len(b) // 2], lambda b: b[:100], lambda b: b"", lambda b: b"no" * 500])
def test_a_file_that_cannot_be_read_is_named(source, tmp_path, spoil):
    where = source(sarcos_inv_test=rows(3))
    path = tmp_path / "sarcos" / "sarcos_inv_test.mat"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(UserError, match=r"sarcos_inv_test\.mat: not a readable MATLAB file") as error:
        sarcos(where)
    assert "\n" not in str(error.value)


# --- the arm's mechanics ----------------------------------------------------------------------------------------------


def one_link(mass=2.0, distance=0.5, inertia=0.3, gravity=(0.0, -9.81, 0.0)) -> Arm:
    """A pendulum that turns about a horizontal axis, its centre of mass `distance` along its x axis."""
    about = np.diag([0.1, 0.2, inertia])[None]
    centre = np.array([[distance, 0.0, 0.0]])
    return Arm(np.zeros(1), np.zeros(1), np.zeros(1), np.array([mass]), centre, about, np.array(gravity))


def two_links(l1=0.6, m=(2.0, 1.5), c=(0.3, 0.25), inertia=(0.05, 0.03)) -> Arm:
    """The planar arm of the textbooks: two parallel axes, the second l1 along the first link."""
    about = np.array([np.diag([0, 0, i]) for i in inertia])
    centre = np.array([[c[0], 0, 0], [c[1], 0, 0]])
    zeros = np.zeros(2)
    return Arm(zeros, np.array([0, l1]), zeros, np.array(m), centre, about, np.array([0, -9.81, 0]))


def random_state(seed: int, n: int, joints: int = JOINTS) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, (3, n, joints))


def at_rest(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(q), np.zeros_like(q)


def weightless(arm: Arm) -> Arm:
    return dataclasses.replace(arm, gravity=np.zeros(3))


def mass_matrix(arm: Arm, q: np.ndarray) -> np.ndarray:
    """M(q) [joints, joints] at one q [joints]: column j is the torque of a unit acceleration of joint j alone."""
    joints = len(q)
    still = np.zeros((joints, joints))
    return weightless(arm).torques(np.tile(q, (joints, 1)), still, np.eye(joints)).T


def poses(arm: Arm, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres of mass [n, joints, 3] and axes [n, joints, 3, 3] of the links in the base's frame, by screw after screw:
    shift along x, twist about x, shift along z, turn about z, as homogeneous matrices."""

    def screw(axis: int, shift: float, angle: np.ndarray) -> np.ndarray:
        matrix = np.tile(np.eye(4), (len(angle), 1, 1))
        i, j = (axis + 1) % 3, (axis + 2) % 3
        matrix[:, i, i] = matrix[:, j, j] = np.cos(angle)
        matrix[:, i, j], matrix[:, j, i] = -np.sin(angle), np.sin(angle)
        matrix[:, axis, 3] = shift
        return matrix

    frame = np.tile(np.eye(4), (len(q), 1, 1))
    centres, axes = [], []
    for i in range(q.shape[1]):
        frame = frame @ screw(0, arm.length[i], np.full(len(q), arm.twist[i])) @ screw(2, arm.offset[i], q[:, i])
        centres.append(frame[:, :3, :3] @ arm.centre[i] + frame[:, :3, 3])
        axes.append(frame[:, :3, :3])
    return np.stack(centres, 1), np.stack(axes, 1)


def potential_energy(arm: Arm, q: np.ndarray) -> np.ndarray:
    return -np.einsum("i,nik,k->n", arm.mass, poses(arm, q)[0], arm.gravity)


def kinetic_energy(arm: Arm, q: np.ndarray, velocity: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """½ Σ m v² + ωᵀ I ω, with v and ω by finite differences of the poses."""
    (c1, r1), (c2, r2) = (poses(arm, q + sign * h * velocity) for sign in (-1, 1))
    v = (c2 - c1) / (2 * h)
    _, axes = poses(arm, q)
    skew = np.einsum("niab,nicb->niac", (r2 - r1) / (2 * h), axes)
    ω = np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], -1)
    own = np.einsum("niab,nia->nib", axes, ω)
    return 0.5 * (np.einsum("i,nik->n", arm.mass, v**2) + np.einsum("nia,iab,nib->n", own, arm.inertia, own))


def test_a_link_at_rest_is_held_against_its_weight():
    """τ = m g d cos q: 9.81 N m horizontal, nothing hanging or standing, and half as much at 60°."""
    q = np.array([0, np.pi / 2, -np.pi / 2, np.pi / 3, np.pi])[:, None]
    torque = one_link().torques(q, *at_rest(q))
    np.testing.assert_allclose(torque[:, 0], [9.81, 0, 0, 4.905, -9.81], atol=1e-12)


def test_a_link_that_speeds_up_needs_its_inertia_about_the_axis():
    """τ = (I + m d²) q̈ = (0.3 + 2 · 0.25) · 3 = 2.4 N m; how fast it turns does not matter."""
    arm = one_link(gravity=(0.0, 0.0, 0.0))
    torque = arm.torques(np.array([[0.4]]), np.array([[5.0]]), np.array([[3.0]]))
    np.testing.assert_allclose(torque, [[2.4]], rtol=1e-14)


def test_two_links_are_the_textbooks():
    """Craig, eq. 6.58 (with inertia): the planar arm's mass matrix, Coriolis and centrifugal terms, and gravity."""
    l1, (m1, m2), (c1, c2), (i1, i2), g = 0.6, (2.0, 1.5), (0.3, 0.25), (0.05, 0.03), 9.81
    q, v, a = random_state(0, 20, 2)
    cos, sin = np.cos(q[:, 1]), np.sin(q[:, 1])
    m11 = i1 + i2 + m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cos)
    m12 = i2 + m2 * (c2**2 + l1 * c2 * cos)
    m22 = i2 + m2 * c2**2
    push = m2 * l1 * c2 * sin
    weight2 = m2 * g * c2 * np.cos(q.sum(1))
    weight1 = (m1 * c1 + m2 * l1) * g * np.cos(q[:, 0]) + weight2
    τ1 = m11 * a[:, 0] + m12 * a[:, 1] - push * (v[:, 1] ** 2 + 2 * v[:, 0] * v[:, 1]) + weight1
    τ2 = m12 * a[:, 0] + m22 * a[:, 1] + push * v[:, 0] ** 2 + weight2
    np.testing.assert_allclose(two_links().torques(q, v, a), np.column_stack([τ1, τ2]), rtol=1e-11, atol=1e-12)


def test_torque_is_linear_in_acceleration_with_a_symmetric_positive_definite_mass_matrix():
    q, velocity, acceleration = random_state(1, 5)
    offset = ARM.torques(q, velocity, np.zeros_like(q))
    for k in range(5):
        M = mass_matrix(ARM, q[k])
        np.testing.assert_allclose(M, M.T, atol=1e-13)
        assert np.linalg.eigvalsh(M).min() > 1e-3
        found = ARM.torques(q, velocity, acceleration)[k]
        np.testing.assert_allclose(found, M @ acceleration[k] + offset[k], rtol=1e-11, atol=1e-11)


def test_at_rest_torque_is_the_slope_of_the_potential_energy():
    q, h = random_state(2, 4)[0], 1e-6
    steps = h * np.eye(JOINTS)
    slope = [(potential_energy(ARM, q + step) - potential_energy(ARM, q - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(ARM.torques(q, *at_rest(q)), np.array(slope).T, atol=1e-7)
    assert np.ptp(potential_energy(ARM, q)) > 1  # gravity is not zero


def test_kinetic_energy_is_that_of_the_mass_matrix():
    q, velocity, _ = random_state(3, 4)
    by_matrix = [0.5 * v @ mass_matrix(ARM, at) @ v for at, v in zip(q, velocity, strict=True)]
    np.testing.assert_allclose(by_matrix, kinetic_energy(ARM, q, velocity), rtol=1e-7)


def test_torque_of_velocity_is_lagranges():
    """c_k = Σ_ij (∂M_kj/∂q_i − ½ ∂M_ij/∂q_k) q̇_i q̇_j. Energies cannot test it: gyroscopic moments do no work."""
    q, velocity, _ = random_state(6, 3)
    h, found = 1e-5, weightless(ARM).torques(q, velocity, np.zeros_like(q))
    for at, v, torque in zip(q, velocity, found, strict=True):
        steps = h * np.eye(JOINTS)
        slope = np.array([(mass_matrix(ARM, at + e) - mass_matrix(ARM, at - e)) / (2 * h) for e in steps])  # [i, k, j]
        expected = np.einsum("ikj,i,j->k", slope, v, v) - 0.5 * np.einsum("kij,i,j->k", slope, v, v)
        np.testing.assert_allclose(torque, expected, atol=1e-8)


def test_power_is_what_the_energy_grows_by():
    """d/dt (kinetic + potential) = q̇ᵀτ along a movement, everything but τ from the links' poses alone."""
    time, h = np.linspace(0, 3, 40), 1e-4

    def energy(at: np.ndarray) -> np.ndarray:
        q, velocity, _ = movement(np.random.default_rng(4), at)
        return kinetic_energy(ARM, q, velocity) + potential_energy(ARM, q)

    q, velocity, acceleration = movement(np.random.default_rng(4), time)
    power = (velocity * ARM.torques(q, velocity, acceleration)).sum(1)
    growth = (energy(time + h) - energy(time - h)) / (2 * h)
    np.testing.assert_allclose(growth, power, atol=1e-4 * np.abs(power).max())
    assert np.abs(power).max() > 5


def test_a_movement_is_its_own_derivative():
    time, h = np.linspace(0, 5, 50), 1e-5
    (q, velocity, acceleration), before, after = (
        movement(np.random.default_rng(5), time + shift) for shift in (0, -h, h)
    )
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), velocity, atol=1e-6)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), acceleration, atol=1e-5)
    assert np.abs(q).max() < np.pi


# --- the stand-in -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def standin():
    return sarcos(Source(np.random.default_rng(0), "standin"))


def test_the_standin_has_the_shapes_of_both_files(standin):
    assert standin.kind == "standin"
    assert standin.train.x.shape == (44484, 21)
    assert standin.train.y.shape == (44484, 7)
    assert standin.test.x.shape == (4449, 21)
    assert not standin.facts["overlap"].any()
    assert sarcos_size(outputs=[1]) == (None, 44484)


def test_the_standins_torques_are_the_arms_with_a_hundredth_of_noise(standin):
    x = standin.test.x
    clean = ARM.torques(x[:, :7], x[:, 7:14], x[:, 14:])
    np.testing.assert_allclose((standin.test.y - clean).std(0) / clean.std(0), 0.01, rtol=0.1)


def test_the_standin_is_no_linear_problem_but_mostly_one(standin):
    """As in the real data, a linear model explains much of every torque and leaves far more than the noise."""
    train, test = (np.column_stack([np.ones(len(s)), s.x]) for s in (standin.train, standin.test))
    weights, *_ = np.linalg.lstsq(train, standin.train.y, rcond=None)
    left = (standin.test.y - test @ weights).var(0) / standin.test.y.var(0)
    assert (left < 0.5).all()
    assert (left > 50 * 0.01**2).all()


def test_the_standin_is_a_function_of_its_stream():
    one, same, other = (robot_arm(np.random.default_rng(seed), 50, 10) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one[0], other[0])
    assert [len(table) for table in one] == [50, 10]


def test_pooled_rows_are_all_rows_once_and_standardised_columns_have_mean_0_and_sd_1():
    plain = sarcos(Source(np.random.default_rng(0), mode="standin"), outputs=[1, 3])
    pooled = sarcos(Source(np.random.default_rng(0), mode="standin"), outputs=[1, 3], pooled=True, standardised=True)
    assert pooled.test is None
    assert "overlap" not in pooled.facts
    assert len(pooled.train) == len(plain.train) + (~plain.facts["overlap"]).sum()
    for table in (pooled.train.x, pooled.train.y):
        np.testing.assert_allclose(table.mean(0), 0, atol=1e-9)
        np.testing.assert_allclose(table.std(0, ddof=1), 1)
    assert np.corrcoef(pooled.train.y[: len(plain.train), 1], plain.train.y[:, 1])[0, 1] == pytest.approx(1)
