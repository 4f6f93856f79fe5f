"""UCI Student Performance (Cortez and Silva, 2008): the final grade of pupils of two Portuguese schools.

Shapes: train x [n, 38], y [n] = G3, the final grade from 0 to 20; client [n] = school, 0 GP (Gabriel Pereira),
1 MS (Mousinho da Silveira). n = 649 in the course Portuguese (423 + 226), 395 in maths (349 + 46), in the file's order.
No test split: the study cuts inside each school. `facts`: names of the predictors and clients, which predictors are
numbers, and for the stand-in which ones matter.

The 29 attributes other than the school (the client) and the grades become 38 predictors, as in §3.6.1 of the thesis
"Federated Data Analytics" (2023): 13 numbers (age, hours, absences, scales from 1 to 5), 12 binary attributes as 0/1,
and 13 dummies of the four nominal ones, without the alphabetically first level of each (Mjob 4, Fjob 4, reason 3,
guardian 2). G1 and G2, the grades of earlier terms, are left out: they would make 40.

x and y are raw. The thesis standardises numeric predictors on the 60 % of each school that it trains on, and its errors
(0.82) only make sense for a standardised grade: left to the study. It does not say which course it used.

The stand-in has independent attributes with the assumed frequencies of config/studies/fedlin/student_table.yaml and one
sparse linear truth: a grade is a school's baseline plus the effects of eight predictors plus noise, rounded and clipped
to 0 … 20. Unlike the real table, it has no dependence between attributes and no excess of pupils with grade 0.

Cite: P. Cortez, A. Silva, Using data mining to predict secondary school student performance, FUBUTEC 2008, pp. 5–12.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.simulation import check_name
from fedrepro.data.table_files import as_numbers, expect_rows, read_cells
from fedrepro.errors import UserError
from fedrepro.files import ROOT, read_yaml

#: course → its file, and the number of pupils in each school
COURSES = {"portuguese": ("student-por.csv", (423, 226)), "maths": ("student-mat.csv", (349, 46))}
SCHOOLS = ("GP", "MS")
TABLE = "config/studies/fedlin/student_table.yaml"
STANDIN = read_yaml(ROOT / TABLE)
#: per school: attribute → level → frequency; a single number is the frequency of `yes`
FREQUENCIES, SECOND_SCHOOL = (
    {name: law if isinstance(law, dict) else {"no": 1 - law, "yes": law} for name, law in STANDIN[part].items()}
    for part in ("frequencies", "second_school")
)
COLUMNS = ("school", *FREQUENCIES, "absences", "G1", "G2", "G3")
NUMERIC = (*(name for name, law in FREQUENCIES.items() if all(map(str.isdigit, law))), "absences")
#: attribute → its levels in alphabetical order; the first has no column
LEVELS = {name: tuple(sorted(law)) for name, law in FREQUENCIES.items() if name not in NUMERIC}
PREDICTORS = (*NUMERIC, *(f"{name}_{level}" for name, levels in LEVELS.items() for level in levels[1:]))


def student(source: Source, *, course: str = "portuguese") -> Dataset:
    check_name("student", "course", course, COURSES)
    file, pupils = COURSES[course]
    facts = {
        "predictor_names": np.array(PREDICTORS),
        "numeric": np.array([name in NUMERIC for name in PREDICTORS]),
        "client_names": np.array(SCHOOLS),
    }
    found = source.find("student")
    if found is None:
        facts["relevant"] = np.array([name in STANDIN["effects"] for name in PREDICTORS])
        return Dataset("standin", encode(Path("stand-in"), student_table(source.rng, pupils)), facts=facts)
    cells = read_cells(found[file], COLUMNS, delimiter=";")
    expect_rows(found[file], len(cells), sum(pupils))
    return Dataset("real", encode(found[file], cells), facts=facts, found=found)


def encode(path: Path, cells: Sequence[Sequence[str]]) -> Split:
    """Predictors, grade and school from rows of cells in the order of COLUMNS."""
    column = dict(zip(COLUMNS, zip(*cells, strict=True), strict=True))
    names = (*NUMERIC, "G3")
    numbers = as_numbers(path, list(zip(*(column[name] for name in names), strict=True)), names, first_line=2)
    indices = [(_index(path, name, column[name], levels), len(levels)) for name, levels in LEVELS.items()]
    x = np.column_stack([numbers[:, :-1], *(index == i for index, count in indices for i in range(1, count))])
    return Split(x, numbers[:, -1], client=_index(path, "school", column["school"], SCHOOLS))


def _index(path: Path, name: str, cells: Sequence[str], levels: Sequence[str]) -> np.ndarray:
    for line, cell in enumerate(cells, start=2):
        if cell not in levels:
            raise UserError(f"{path}: line {line}, column {name}: '{cell}' is none of {', '.join(levels)}")
    return np.array([levels.index(cell) for cell in cells])


def student_table(rng: np.random.Generator, pupils: Sequence[int]) -> list[list[str]]:
    """The stand-in's rows of cells in the order of COLUMNS, with `pupils` rows per school."""
    table: list[list[str]] = []
    laws = (FREQUENCIES, FREQUENCIES | SECOND_SCHOOL)
    for name, size, frequencies, baseline in zip(SCHOOLS, pupils, laws, STANDIN["baselines"], strict=True):
        cells = {
            attribute: rng.choice(np.array(list(law)), size=size, p=np.array(list(law.values())) / sum(law.values()))
            for attribute, law in frequencies.items()
        }
        cells["absences"] = (2 * (rng.geometric(0.35, size) - 1)).astype(str)  # assumed: mostly whole days, two each
        final = baseline + rng.normal(0.0, STANDIN["noise"], size)
        for predictor, effect in STANDIN["effects"].items():
            attribute, _, level = predictor.partition("_")
            final += effect * (cells[attribute] == level if level else cells[attribute].astype(float))
        grades = {"G1": final + rng.normal(0.0, 1.4, size), "G2": final + rng.normal(0.0, 1.1, size), "G3": final}
        cells |= {grade: np.clip(np.rint(values), 0, 20).astype(int).astype(str) for grade, values in grades.items()}
        columns = [[name] * size, *(cells[column].tolist() for column in COLUMNS[1:])]
        table += map(list, zip(*columns, strict=True))
    return table


def student_size(course: str = "portuguese", **_: object) -> tuple[int, int]:
    check_name("student", "course", course, COURSES)
    return len(SCHOOLS), sum(COURSES[course][1])


DATASET = Entry(student, seeded=False, size=student_size, files="student", reads=(TABLE,))
