"""UCI Student Performance on its real files: counts, ranges, known values and known dependences."""

from __future__ import annotations

import numpy as np
import pytest


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return np.corrcoef(a, b)[0, 1]


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
    """No dummy is redundant: the 38 columns and a constant have full rank."""
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
