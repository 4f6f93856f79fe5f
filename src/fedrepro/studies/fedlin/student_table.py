"""A stand-in for the table of UCI Student Performance: independent attributes with plausible frequencies, for two
schools that differ in their pupils and in the level of their grades, with one sparse linear truth.

The grade is a school's baseline plus EFFECTS of eight predictors plus noise, rounded and clipped to 0 … 20. All
frequencies and effects are assumed, with the sizes and signs seen in the real table. Unlike the real table, this one
has no dependence between attributes and no excess of pupils with grade 0.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_JOBS = ("at_home", "health", "other", "services", "teacher")
_SCALE = (1, 2, 3, 4, 5)


def _law(levels: Iterable[object], *weights: float) -> dict[str, float]:
    return {str(level): weight for level, weight in zip(levels, weights, strict=True)}


def _yes(probability: float) -> dict[str, float]:
    return {"no": 1 - probability, "yes": probability}


#: attribute → level → frequency in the first school, in the order of the file's columns
FREQUENCIES: dict[str, dict[str, float]] = {
    "sex": _law("FM", 0.57, 0.43),
    "age": _law(range(15, 20), 0.18, 0.27, 0.28, 0.22, 0.05),
    "address": _law("UR", 0.8, 0.2),
    "famsize": _law(("GT3", "LE3"), 0.7, 0.3),
    "Pstatus": _law("TA", 0.88, 0.12),
    "Medu": _law(range(5), 0.01, 0.18, 0.27, 0.22, 0.32),
    "Fedu": _law(range(5), 0.01, 0.23, 0.32, 0.22, 0.22),
    "Mjob": _law(_JOBS, 0.16, 0.08, 0.38, 0.24, 0.14),
    "Fjob": _law(_JOBS, 0.06, 0.04, 0.56, 0.27, 0.07),
    "reason": _law(("course", "home", "other", "reputation"), 0.37, 0.25, 0.08, 0.3),
    "guardian": _law(("father", "mother", "other"), 0.23, 0.7, 0.07),
    "traveltime": _law(range(1, 5), 0.63, 0.3, 0.05, 0.02),
    "studytime": _law(range(1, 5), 0.3, 0.47, 0.16, 0.07),
    "failures": _law(range(4), 0.86, 0.1, 0.02, 0.02),
    "schoolsup": _yes(0.12),
    "famsup": _yes(0.61),
    "paid": _yes(0.06),
    "activities": _yes(0.5),
    "nursery": _yes(0.8),
    "higher": _yes(0.92),
    "internet": _yes(0.84),
    "romantic": _yes(0.36),
    "famrel": _law(_SCALE, 0.03, 0.05, 0.16, 0.48, 0.28),
    "freetime": _law(_SCALE, 0.06, 0.17, 0.39, 0.27, 0.11),
    "goout": _law(_SCALE, 0.07, 0.23, 0.32, 0.21, 0.17),
    "Dalc": _law(_SCALE, 0.69, 0.19, 0.07, 0.03, 0.02),
    "Walc": _law(_SCALE, 0.38, 0.23, 0.19, 0.13, 0.07),
    "health": _law(_SCALE, 0.14, 0.12, 0.19, 0.17, 0.38),
}
#: where the second school's pupils differ: they live further out, and their parents have less schooling
SECOND_SCHOOL = {
    "address": _law("UR", 0.5, 0.5),
    "Medu": _law(range(5), 0.01, 0.33, 0.32, 0.18, 0.16),
    "traveltime": _law(range(1, 5), 0.46, 0.37, 0.13, 0.04),
    "failures": _law(range(4), 0.77, 0.18, 0.03, 0.02),
    "higher": _yes(0.82),
    "internet": _yes(0.63),
}
#: predictor → effect on the grade: per unit of a number, or of a level against its reference; all others have none
EFFECTS = {
    "failures": -1.4,
    "higher_yes": 1.7,
    "studytime": 0.5,
    "Medu": 0.3,
    "schoolsup_yes": -1.2,
    "sex_M": -0.6,
    "Dalc": -0.4,
    "absences": -0.05,
}
BASELINES = (11.0, 9.4)
NOISE = 2.4


def student_table(rng: np.random.Generator, pupils: Sequence[int], columns: Sequence[str]) -> list[list[str]]:
    """Rows of cells in the order of `columns`, with `pupils` rows per school, as in the file."""
    schools = [
        _school(rng, "GP", pupils[0], FREQUENCIES, BASELINES[0]),
        _school(rng, "MS", pupils[1], FREQUENCIES | SECOND_SCHOOL, BASELINES[1]),
    ]
    return [list(row) for school in schools for row in zip(*(school[name] for name in columns), strict=True)]


def _school(
    rng: np.random.Generator, name: str, pupils: int, frequencies: Mapping[str, Mapping[str, float]], baseline: float
) -> dict[str, list[str]]:
    cells = {
        attribute: rng.choice(np.array(list(law)), size=pupils, p=np.array(list(law.values())) / sum(law.values()))
        for attribute, law in frequencies.items()
    }
    cells["absences"] = (2 * (rng.geometric(0.35, pupils) - 1)).astype(str)  # assumed: mostly whole days, two each
    final = baseline + rng.normal(0.0, NOISE, pupils)
    for predictor, effect in EFFECTS.items():
        attribute, _, level = predictor.partition("_")
        final += effect * (cells[attribute] == level if level else cells[attribute].astype(float))
    grades = {"G1": final + rng.normal(0.0, 1.4, pupils), "G2": final + rng.normal(0.0, 1.1, pupils), "G3": final}
    cells |= {grade: np.clip(np.rint(values), 0, 20).astype(int).astype(str) for grade, values in grades.items()}
    return {"school": [name] * pupils} | {column: values.tolist() for column, values in cells.items()}
