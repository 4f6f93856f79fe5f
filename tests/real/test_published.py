"""The printed numbers, compared with the texts of the papers.

A number with `read` = text or table must appear in the text near its place: within a page of a mention of its table, or
anywhere in the paper for a section. Numbers read off a figure by eye (`read` = figure) have no such text.
"""

from __future__ import annotations

import csv
import os
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT

FOLDER = Path(os.environ.get("FEDREPRO_TEST_PAPERS") or ROOT.parent / "shared" / "papers")
STUDIES = load_studies(ROOT / "config")
PAGE = 6000  # characters


@cache
def paper_of(study: str) -> str:
    """The number of the paper, "000": the sources of the experiments begin with it."""
    experiments = load_experiments(ROOT / "config", "paper", study)
    numbers = {m[1] for e in experiments.values() if (m := re.match(r"(\d{3}), ", e.spec["source"]))}
    assert len(numbers) == 1, f"{study}: one number is needed, the sources have {sorted(numbers)}"
    return numbers.pop()


@cache
def text_of(study: str) -> str:
    found = sorted(FOLDER.glob(f"{paper_of(study)}_*.txt"))
    if not found:
        pytest.skip("the papers' texts are not here: set FEDREPRO_TEST_PAPERS to their folder")
    return found[0].read_text(errors="replace")


def near(text: str, place: str) -> str:
    """The text around every mention of the table in `place`; the whole text for other places."""
    table = re.search(r"Table ([\w.]*\w)", place)
    if not table:
        return text
    mentions = re.finditer(rf"Table {re.escape(table[1])}(?![\w.]*\d)", text)
    return "\n".join(text[max(0, m.start() - PAGE) : m.end() + PAGE] for m in mentions)


def stands(number: str, text: str) -> bool:
    """Whether a printed number occurs in a text as a separate number, also as a power of ten or a fraction."""
    forms = {re.escape(number)}
    if power := re.fullmatch(r"1e-?(\d+)", number):
        forms |= {rf"10\^\{{?[-−]{power[1]}\}}?", rf"10[-−–]{power[1]}", "0\\." + "0" * (int(power[1]) - 1) + "1"}
    if number.startswith("0."):
        share = Fraction(number)
        forms |= {re.escape(number[1:]), rf"{share.numerator}/{share.denominator}"}
        forms.add(rf"\\frac\{{{share.numerator}\}}\{{{share.denominator}\}}")
    if re.fullmatch(r"\d{4,}", number):
        forms.add(f"{int(number):,}")
    if r"\times 10$" in text:  # a table that prints ten times its numbers
        forms.add(re.escape(f"{(10 * Decimal(number)).normalize():f}"))
    zeros = "0*" if "." in number else ""  # 0.88 is printed as 0.880
    return any(re.search(rf"(?<![\d.]){form}{zeros}(?!\d|\.\d)", text) for form in forms)


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_names_the_number_of_its_paper(study):
    assert re.fullmatch(r"\d{3}", paper_of(study))


def test_numbers_are_found_as_numbers():
    assert stands("0.81", "about 0.81.")
    assert stands("0.81", "is .81 ")
    assert not stands("0.81", "is 0.812")
    assert stands("0.81", "is 0.810")
    assert not stands("81", "is 810")
    assert not stands("81", "is 0.81")
    assert stands("1e-4", "β = $10^{-4}$")
    assert stands("0.75", r"above $\frac{3}{4}$")
    assert stands("44484", "has 44,484 rows")
    assert stands("0.275", r"RMSE $\times 10$ is 2.75")
    assert not stands("0.275", "is 2.75")
    text = "x" * PAGE + " 0.5 Table 3.1: all " + "x" * PAGE + " 0.7 "
    assert stands("0.5", near(text, "Table 3.1"))
    assert not stands("0.7", near(text, "Table 3.1"))
    assert near(text, "Table 3.10") == ""


ROWS = [
    pytest.param(name, row, id=f"{name}/{row['id']}")
    for name, study in sorted(STUDIES.items())
    for path in study.files("published.csv")
    for row in csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines())
    if row["read"] in ("text", "table")
]


@pytest.mark.parametrize(("study", "row"), ROWS)
def test_a_printed_number_stands_in_its_paper(study, row):
    text = near(text_of(study), row["place"])
    assert stands(row["value"], text), f"{row['value']} is not near {row['place']}"
    assert not row["spread"] or stands(row["spread"], text), f"the spread {row['spread']} is not near {row['place']}"
