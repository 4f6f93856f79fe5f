"""The registers of our assumptions and of contradictions in the papers."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.evidence.assumptions import assumed_settings, errata, listed_errata
from fedrepro.files import ROOT, read_yaml
from tests.configs import write_yaml

STUDIES = load_studies(ROOT / "config")
FILE = """\
title: "A line"
dataset:
  name: dfl_line # §IV
  noise: 0.5 # assumed: the paper gives none
  deep:
    er: [1, 2] # §IV # assumed: two of them
model:
  name: linear # assumed: neither loss nor start is named
rounds: 200 # §IV speaks of 160
algorithms:
  toy:
    variants:
      no fault: {servers: 5} # assumed: five
"""


def test_every_assumption_is_listed_once_with_its_full_key_and_what_varies_it(tmp_path):
    names = ("toy/experiments/line", "toy/experiments/ring", "other/experiments/few")
    line, ring, few = (tmp_path / f"{name}.yaml" for name in names)
    write_yaml(line, FILE)
    write_yaml(ring, "dataset:\n  noise: 0.5 # assumed: the paper gives none\n")
    write_yaml(few, "rounds: 3 # assumed: few\n")
    varied = "a: {varies: [noise, deep.er]}\nb: {varies: [dataset.noise]}\nc: {}\n"
    write_yaml(tmp_path / "toy" / "artefacts.yaml", varied)
    found = assumed_settings([few, ring, line])
    assert [(f["study"], f["key"], f["value"], f["reason"]) for f in found] == [
        ("other", "rounds", "3", "few"),
        ("toy", "dataset.noise", "0.5", "the paper gives none"),
        ("toy", "dataset.deep.er", "[1, 2]", "two of them"),
        ("toy", "model.name", "linear", "neither loss nor start is named"),
        ("toy", "algorithms.toy.variants.no fault", "{servers: 5}", "five"),
    ]
    assert [f["experiments"] for f in found] == ["few", "line, ring", "line", "line", "line"]
    assert [f["shown"] for f in found] == ["", "toy/a, toy/b", "toy/a", "", ""]
    assert assumed_settings([]) == []


def test_a_comment_belongs_to_the_line_of_its_value_or_placeholder(tmp_path):
    """Inherited and filled-in values have the comment of the line they come from. A value that replaces another has its
    own comment or none. A comment on a case does not apply to its values."""
    base = """\
dataset:
  noise: 0.50 # assumed: none is given
  size: 3 # assumed: small
algorithms: # assumed: both
  toy: {servers: 5, steps: 1.0e-4} # assumed: five
"""
    own = """\
extends: _base
id: "{data}"
for_each:
  data:
    plain: {count: 10} # assumed: no value of its own
    other:
      count: 20 # assumed: twice as many
rounds: "{count}" # assumed: enough
dataset:
  size: 4
algorithms:
  toy: {steps: 2}
"""
    folder = tmp_path / "toy" / "experiments"
    write_yaml(folder / "_base.yaml", base)
    write_yaml(folder / "both.yaml", own)
    found = assumed_settings(folder.glob("*.yaml"))
    assert {(f["key"], f["value"], f["reason"], f["experiments"]) for f in found} == {
        ("dataset.noise", "0.50", "none is given", "other, plain"),
        ("rounds", "10", "enough", "plain"),
        ("rounds", "20", "twice as many", "other"),
        ("algorithms", "", "both", "other, plain"),
        ("algorithms.toy", "{servers: 5, steps: 2}", "five", "other, plain"),
    }
    assert assumed_settings([folder / "both.yaml"]) == found  # the base need not be among the files
    assert assumed_settings([folder / "_base.yaml"]) == []


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_what_an_artefact_varies_is_an_assumption(study):
    found = assumed_settings(study.folder.glob("experiments/*.yaml"))
    artefacts = read_yaml(study.file("artefacts.yaml"))
    for name, spec in artefacts.items():
        for part in spec.get("varies", []):
            assert any(f".{a['key']}".endswith(f".{part}") for a in found), f"{name}: {part}"


ERRATUM = {"place": "eq. (1)", "printed": "i = 1, …, N", "should_be": "i = 1, …, L", "severity": "slip", "how": "§2"}
LEDGER = [
    ("toy", "toy/adds_up", "§IV", "It adds up.", "2", "3", "contradicted by the source", "3 ≠ 2"),
    ("toy", "toy/holds", "§V", "It holds.", "", "2", "reproduced", "2 = 2"),
]


@pytest.fixture
def ledger(tmp_path):
    columns = ["study", "claim", "source", "statement", "paper_says", "ours", "verdict", "reason"]
    pd.DataFrame(LEDGER, columns=columns).to_csv(tmp_path / "ledger.csv", index=False)
    return tmp_path / "ledger.csv"


def test_errata_are_what_is_listed_and_what_the_source_contradicts(ledger):
    folders = [ledger.parent / "toy", ledger.parent / "other"]
    computed = {"study": "toy", "place": "§IV", "printed": "2", "should_be": "3", "severity": "computed"}
    computed |= {"how": "computed, toy/adds_up: 3 ≠ 2"}
    assert errata(ledger.with_name("missing.csv"), folders) == []
    assert errata(ledger, folders) == errata(ledger, []) == [computed]
    for folder in folders:
        write_yaml(folder / "errata.yaml", [ERRATUM])
    assert errata(ledger, folders) == [{"study": "toy", **ERRATUM}, computed]  # the other study was not run


@pytest.mark.parametrize(
    ("how", "once"),
    [("adds_up", True), ("our claim `toy/adds_up`", True), ("adds_up_too", False), ("other/adds_up", False)],
)
def test_a_contradiction_that_an_erratum_rests_on_is_listed_once(ledger, how, once):
    write_yaml(ledger.parent / "toy" / "errata.yaml", [{**ERRATUM, "how": how}])
    assert [row["severity"] for row in errata(ledger, [ledger.parent / "toy"])] == ["slip", "computed"][: 2 - once]


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([{**ERRATUM, "severity": "bad"}], "0.severity"),
        ([{"place": "x"}], "0: 'printed' is missing"),
        ([ERRATUM, {**ERRATUM, "how": "again"}], r"'eq\. \(1\)' is listed twice"),
    ],
)
def test_wrong_errata_are_errors(ledger, entries, says):
    write_yaml(ledger.parent / "toy" / "errata.yaml", entries)
    with pytest.raises(UserError, match=rf"toy/errata\.yaml: {says}"):
        errata(ledger, [ledger.parent / "toy"])


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_the_listed_errata_are_whole(study):
    assert listed_errata(study.file("errata.yaml"))
