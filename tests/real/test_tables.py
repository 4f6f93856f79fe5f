"""The real tables: counts, ranges, known values and known dependences."""

from __future__ import annotations

import numpy as np
import pytest


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return np.corrcoef(a, b)[0, 1]


# --- UCI Student Performance ------------------------------------------------------------------------------------------


@pytest.fixture(params=[("portuguese", 423, 226), ("maths", 349, 46)], ids=lambda p: p[0])
def course(request, real):
    name, *pupils = request.param
    return real("student", course=name), pupils


def named(data, name: str) -> np.ndarray:
    return data.train.x[:, data.facts["predictor_names"].tolist().index(name)]


def test_student_counts(course):
    data, pupils = course
    assert data.kind == "real"
    assert data.found.complete
    assert len(data.train) in (649, 395)
    assert data.train.x.shape == (sum(pupils), 38)
    assert np.bincount(data.train.client).tolist() == pupils


def test_student_ranges(course):
    data, _ = course
    ranges = {"age": (15, 22), "failures": (0, 3), "absences": (0, 75)}
    ranges |= dict.fromkeys(("Medu", "Fedu"), (0, 4)) | dict.fromkeys(("traveltime", "studytime"), (1, 4))
    ranges |= dict.fromkeys(("famrel", "freetime", "goout", "Dalc", "Walc", "health"), (1, 5))
    numeric = data.facts["predictor_names"][data.facts["numeric"]].tolist()
    assert set(ranges) == set(numeric)
    for name, (low, high) in ranges.items():
        assert low <= named(data, name).min()
        assert named(data, name).max() <= high
    assert set(np.unique(data.train.x[:, ~data.facts["numeric"]])) == {0, 1}
    assert data.train.y.min() == 0
    assert data.train.y.max() in (19, 20)
    assert np.array_equal(data.train.x, np.rint(data.train.x))


def test_student_predictors_are_not_redundant(course):
    """No dummy is one too many: the 38 columns and a constant have full rank."""
    x = course[0].train.x
    assert np.linalg.matrix_rank(np.column_stack([np.ones(len(x)), x])) == 39


def test_student_first_row(real):
    """A girl of 18 in town at GP, family of more than three, parents apart, both with a degree, mother at home, father
    a teacher: 11 in Portuguese with 4 absences, 6 in maths with 6."""
    for name, absences, grade in (("portuguese", 4, 11), ("maths", 6, 6)):
        data = real("student", course=name)
        ones = ("address_U", "Fjob_teacher", "guardian_mother", "schoolsup_yes", "nursery_yes", "higher_yes")
        expected = dict.fromkeys(data.facts["predictor_names"].tolist(), 0.0) | dict.fromkeys(ones, 1.0)
        expected |= {"age": 18, "Medu": 4, "Fedu": 4, "traveltime": 2, "studytime": 2, "failures": 0, "famrel": 4}
        expected |= {"freetime": 3, "goout": 4, "Dalc": 1, "Walc": 1, "health": 3, "absences": absences}
        assert dict(zip(data.facts["predictor_names"].tolist(), data.train.x[0].tolist(), strict=True)) == expected
        assert (data.train.y[0], data.train.client[0]) == (grade, 0)


def test_student_grades_go_with_what_they_should(course):
    data, _ = course
    assert correlation(named(data, "failures"), data.train.y) < -0.3
    assert correlation(named(data, "Medu"), data.train.y) > 0.2
    assert correlation(named(data, "higher_yes"), data.train.y) > 0.15
    assert correlation(named(data, "Medu"), named(data, "Fedu")) > 0.6
    means = [data.train.y[data.train.client == k].mean() for k in (0, 1)]
    assert means[0] > means[1]


# --- NASA C-MAPSS FD001 -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engines(real):
    return real("cmapss")


def test_cmapss_counts(engines):
    assert engines.kind == "real"
    assert engines.train.x.shape == (20631, 1)
    assert engines.train.y.shape == (20631, 21)
    lives = np.bincount(engines.train.client)
    assert len(lives) == 100
    assert (lives.min(), lives.max()) == (128, 362)
    assert engines.train.x[:192, 0].tolist() == list(range(1, 193))  # the first engine's life
    assert engines.train.client[191:193].tolist() == [0, 1]


def test_cmapss_first_row(engines):
    expected = [518.67, 641.82, 1589.70, 1400.60, 14.62, 21.61, 554.36, 2388.06, 9046.19, 1.30, 47.47, 521.66, 2388.02]
    expected += [8138.62, 8.4195, 0.03, 392, 2388, 100.00, 39.06, 23.4190]
    assert engines.train.y[0].tolist() == expected


def test_cmapss_sensors_that_never_change(engines):
    spread = np.ptp(engines.train.y, axis=0)
    assert (np.flatnonzero(spread == 0) + 1).tolist() == [1, 5, 10, 16, 18, 19]
    assert np.unique(engines.train.y[:, 5]).tolist() == [21.60, 21.61]
    assert np.isfinite(engines.train.y).all()


def test_cmapss_sensors_drift_towards_failure(engines):
    """From its first 30 cycles to its last 10, sensor 2 (a temperature) rises and sensor 7 (a pressure) falls, in every
    engine; the two speeds 9 and 14 go either way."""
    y, owner = engines.train.y, engines.train.client
    moved = np.array([y[owner == k][-10:].mean(0) - y[owner == k][:30].mean(0) for k in range(100)])
    assert (moved[:, 2 - 1] > 0).all()
    assert (moved[:, 7 - 1] < 0).all()
    for speed in (9, 14):
        assert 10 < (moved[:, speed - 1] > 0).sum() < 90
    assert correlation(moved[:, 9 - 1], moved[:, 14 - 1]) > 0.9


def test_cmapss_chosen_sensors_are_columns_of_all(real, engines):
    assert np.array_equal(real("cmapss", sensors=[2, 7]).train.y, engines.train.y[:, [1, 6]])
    assert np.array_equal(real("cmapss", sensors=2).train.y, engines.train.y[:, 1])


# --- SARCOS -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arm(real):
    return real("sarcos")


def test_sarcos_counts(arm):
    """The test file alone is the train split; with the training file there are both."""
    rows = (44484, 4449) if arm.found.complete else (4449, None)
    assert (len(arm.train), arm.test and len(arm.test)) == rows
    assert arm.train.x.shape[1] == 21
    assert arm.train.y.shape[1] == 7


def test_sarcos_test_file(arm):
    split = arm.test if arm.found.complete else arm.train
    assert split.x.shape[1] + split.y.shape[1] == 28
    assert np.isfinite(split.x).all()
    assert np.isfinite(split.y).all()
    first = np.concatenate([split.x[0], split.y[0]])
    assert first[[0, 1, 7, 14, 21, 27]].tolist() == [0.019478, -0.134218, -0.266791, 13.439378, 50.292652, 8.090739]
    assert np.abs(split.x[:, :7]).max() < np.pi
    assert np.abs(split.x[:, 7:14]).max() < 5
    assert np.abs(split.x[:, 14:]).max() < 75
    assert np.abs(split.y).max() < 125
    assert len(np.unique(np.column_stack([split.x, split.y]), axis=0)) == 4449


def test_sarcos_test_file_is_one_movement_at_even_steps(arm):
    """From row to row every joint moves by its mean velocity times the same 0.11 s: rows in the order of time, a few of
    a recording's steps apart, not draws of their own."""
    x = (arm.test if arm.found.complete else arm.train).x
    moved, velocity = np.diff(x[:, :7], axis=0), (x[1:, 7:14] + x[:-1, 7:14]) / 2
    step = (moved * velocity).sum(1) / (velocity**2).sum(1)
    missed = ((moved - step[:, None] * velocity) ** 2).sum(1) / (moved**2).sum(1)
    assert np.median(missed) < 0.02
    assert np.quantile(step, [0.25, 0.5, 0.75]) == pytest.approx(0.11, rel=0.1)


def test_sarcos_torques_follow_their_accelerations(arm):
    """Joints 1 and 4 turn with the acceleration of their own joint, and a linear model explains most of torques 1–4."""
    x, y = arm.train.x, arm.train.y
    assert correlation(x[:, 14], y[:, 0]) > 0.5
    assert correlation(x[:, 17], y[:, 3]) > 0.5
    design = np.column_stack([np.ones(len(x)), x])
    weights, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = (y - design @ weights).var(0) / y.var(0)
    assert (left[:4] < 0.2).all()
