"""The student table: 38 predictors by hand, wrong files, and the truth behind the stand-in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.datasets.student import (
    COLUMNS,
    COURSES,
    LEVELS,
    NUMERIC,
    PREDICTORS,
    STANDIN,
    encode,
    student,
    student_size,
    student_table,
)
from tests.unit.data.real_files import unverified

#: an invented pupil
PUPIL = dict(
    school="MS", sex="M", age="17", address="U", famsize="GT3", Pstatus="T", Medu="4", Fedu="3", Mjob="teacher",
    Fjob="at_home", reason="course", guardian="mother", traveltime="2", studytime="1", failures="0", schoolsup="no",
    famsup="yes", paid="no", activities="yes", nursery="no", higher="yes", internet="no", romantic="no", famrel="5",
    freetime="3", goout="2", Dalc="1", Walc="4", health="5", absences="6", G1="9", G2="10", G3="12",
)  # fmt: skip


def standin(seed: int = 0, **parameters):
    return student(Source(np.random.default_rng(seed), "standin"), **parameters)


def csv_text(rows: list[list[str]], columns=COLUMNS) -> str:
    return "\n".join([";".join(columns), *(";".join(f'"{cell}"' for cell in row) for row in rows)]) + "\n"


@pytest.fixture
def table() -> list[list[str]]:
    return student_table(np.random.default_rng(1), COURSES["portuguese"][1])


@pytest.fixture
def source(tmp_path, monkeypatch):
    """source(text): uses the text as the Portuguese file; the maths file is empty."""

    def make(text: str) -> Source:
        folder = tmp_path / "student-performance"
        folder.mkdir()
        (folder / "student-por.csv").write_text(text)
        (folder / "student-mat.csv").write_text("")
        return unverified(monkeypatch, "student", tmp_path)

    return make


# --- encoding ---------------------------------------------------------------------------------------------------------


def test_the_predictors_add_up_to_38():
    assert len(NUMERIC) == 13
    assert sum(len(levels) == 2 for levels in LEVELS.values()) == 12
    assert sum(len(levels) - 1 for levels in LEVELS.values() if len(levels) > 2) == 13
    assert len(set(PREDICTORS)) == 38
    assert {*NUMERIC, *LEVELS, "school", "G1", "G2", "G3"} == set(COLUMNS)
    assert tuple(PUPIL) == COLUMNS
    assert all(list(levels) == sorted(levels) for levels in LEVELS.values())


def test_a_pupil_by_hand():
    split = encode(Path("here"), [[PUPIL[name] for name in COLUMNS]])
    x = dict(zip(PREDICTORS, split.x[0].tolist(), strict=True))
    numbers = {"age": 17, "Medu": 4, "Fedu": 3, "traveltime": 2, "studytime": 1, "failures": 0, "famrel": 5}
    numbers |= {"freetime": 3, "goout": 2, "Dalc": 1, "Walc": 4, "health": 5, "absences": 6}
    ones = ("sex_M", "address_U", "Pstatus_T", "famsup_yes", "activities_yes", "higher_yes", "Mjob_teacher")
    assert x == {name: 0 for name in PREDICTORS} | numbers | dict.fromkeys((*ones, "guardian_mother"), 1)
    assert split.y.tolist() == [12]
    assert split.client.tolist() == [1]


# --- the file ---------------------------------------------------------------------------------------------------------


def test_what_is_in_the_file_is_what_comes_out(source, table):
    data = student(source(csv_text(table)))
    expected = encode(Path("here"), table)
    assert data.kind == "real"
    assert data.found.name == "student"
    assert np.array_equal(data.train.x, expected.x)
    assert np.array_equal(data.train.y, expected.y)
    assert np.array_equal(data.train.client, expected.client)
    assert "relevant" not in data.facts


def change(table, row, name, cell):
    table[row][COLUMNS.index(name)] = cell
    return csv_text(table)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda t: csv_text(t, [c if c != "age" else "years" for c in COLUMNS]), "no column age; unknown column years"),
        (lambda t: csv_text([row[:-1] for row in t], COLUMNS[:-1]), "no column G3"),
        (lambda t: csv_text([[r[1], r[0], *r[2:]] for r in t], ["sex", "school", *COLUMNS[2:]]), "not in the order"),
        (lambda t: csv_text(t).replace(";", ","), "no column school, "),
        (lambda t: change(t, 4, "absences", "NaN"), r"line 6, column absences: 'NaN' is not a finite number"),
        (lambda t: change(t, 0, "G3", "twelve"), r"line 2, column G3: 'twelve' is not a finite number"),
        (lambda t: change(t, 7, "Medu", ""), r"line 9, column Medu: '' is not a finite number"),
        (lambda t: change(t, 7, "Mjob", "baker"), r"line 9, column Mjob: 'baker' is none of at_home, health, "),
        (lambda t: change(t, 1, "school", "XX"), r"line 3, column school: 'XX' is none of GP, MS"),
        (lambda t: csv_text(t[:-1]), r"648 rows, not 649 \(cut off\?\)"),
        (lambda t: csv_text([*t, t[0]]), r"650 rows, not 649$"),
        (lambda t: csv_text(t)[:-30], r"line 650 has \d+ cells, not 33"),
        (lambda t: "", "no column school, "),
    ],
)
def test_a_wrong_file_is_named_with_its_line(source, table, spoil, said):
    with pytest.raises(UserError, match=rf"student-por\.csv: .*{said}") as error:
        student(source(spoil(table)))
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_text_is_named(source, tmp_path):
    where = source("")
    (tmp_path / "student-performance" / "student-por.csv").write_bytes(b"\xff\xfe\x00school")
    with pytest.raises(UserError, match=r"student-por\.csv: not a text file"):
        student(where)


def test_a_file_with_a_checksum_must_have_it(tmp_path, table):
    (tmp_path / "student-performance").mkdir()
    for name in ("student-por.csv", "student-mat.csv"):
        (tmp_path / "student-performance" / name).write_text(csv_text(table))
    with pytest.raises(UserError, match=r"student-por\.csv: md5 is .*, not 973e7bac"):
        student(Source(np.random.default_rng(0), "auto", (tmp_path,)))


@pytest.mark.parametrize("call", [lambda course: standin(course=course), lambda course: student_size(course=course)])
def test_a_wrong_course_is_named(call):
    with pytest.raises(UserError, match=r"student: course = 'math' is unknown; did you mean 'maths'\?"):
        call("math")


# --- the stand-in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("course", "gp", "ms"), [("portuguese", 423, 226), ("maths", 349, 46)])
def test_the_standin_has_the_same_schools(course, gp, ms):
    data = standin(course=course)
    assert data.kind == "standin"
    assert data.found is None
    assert data.train.x.shape == (gp + ms, 38)
    assert np.bincount(data.train.client).tolist() == [gp, ms]
    assert data.facts["client_names"].tolist() == ["GP", "MS"]
    assert data.facts["predictor_names"].tolist() == list(PREDICTORS)
    assert data.facts["numeric"].tolist() == [True] * 13 + [False] * 25
    assert student_size(course=course, other=1) == (2, gp + ms)
    assert ((data.train.y >= 0) & (data.train.y <= 20) & (data.train.y == np.rint(data.train.y))).all()
    assert set(np.unique(data.train.x[:, 13:])) == {0, 1}


def test_the_standin_follows_one_sparse_truth_at_two_levels():
    """Least squares on 40,000 pupils of each school finds baselines and effects (within 5 standard errors)."""
    table = student_table(np.random.default_rng(0), (40000, 40000))
    split = encode(Path("here"), table)
    design = np.column_stack([split.client == 0, split.client == 1, split.x])
    found, *_ = np.linalg.lstsq(design, split.y, rcond=None)
    truth = np.array([*STANDIN["baselines"], *(STANDIN["effects"].get(name, 0.0) for name in PREDICTORS)])
    noise = np.sqrt(STANDIN["noise"] ** 2 + 1 / 12)  # rounding to whole grades adds the variance of a uniform law
    errors = noise * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    assert (np.abs(found - truth) < 5 * errors).all()
    assert np.std(split.y - design @ found) == pytest.approx(noise, rel=0.02)
    relevant = standin().facts["relevant"]
    assert [name for name, is_so in zip(PREDICTORS, relevant, strict=True) if is_so] == [
        name for name in PREDICTORS if name in STANDIN["effects"]
    ]
    assert relevant.sum() == len(STANDIN["effects"]) == 8


def test_the_standin_is_a_function_of_its_stream():
    assert np.array_equal(standin(3).train.x, standin(3).train.x)
    assert not np.array_equal(standin(3).train.x, standin(4).train.x)
