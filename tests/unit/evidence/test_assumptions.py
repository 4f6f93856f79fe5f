"""The registers of our assumptions and of contradictions in the papers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedrepro.core.alternatives import assumptions_of, varied
from fedrepro.core.experiment import Experiment, expanded, load_experiments, resolve
from fedrepro.core.schemas import validate
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.evidence.assumptions import assumed_settings, errata, listed_errata
from fedrepro.files import ROOT, read_yaml
from fedrepro.workflow.checks import check_all
from tests.configs import write_config, write_yaml

STUDIES = load_studies(ROOT / "config")
FILE = """\
title: "A line"
dataset:
  name: dfl_line # §IV
  noise: 0.5
  deep:
    er: [1, 2] # §IV
rounds: 200 # §IV speaks of 160
algorithms:
  toy:
    variants:
      no fault: {servers: 5}
assumptions:
  dataset.noise: {why: the paper gives none, also: [0.1, {dataset.noise: 1.0, rounds: 3}]}
  dataset.deep.er: {why: two of them, because: there is no third}
  algorithms.toy.variants.no fault: {why: five, also: [true]}
"""


def test_every_assumption_is_listed_once_with_its_full_key_and_what_varies_it(tmp_path):
    names = ("toy/experiments/line", "toy/experiments/ring", "other/experiments/few")
    line, ring, few = (tmp_path / f"{name}.yaml" for name in names)
    write_yaml(line, FILE)
    noise = "dataset.noise: {why: the paper gives none, also: [0.1, {dataset.noise: 1.0, rounds: 3}]}"
    write_yaml(ring, f"dataset:\n  noise: 0.5\nassumptions:\n  {noise}\n")
    write_yaml(few, "rounds: 3\nassumptions: {rounds: {why: few, because: that is enough}}\n")
    varied = "a: {varies: [noise, deep.er]}\nb: {varies: [dataset.noise]}\nc: {}\n"
    write_yaml(tmp_path / "toy" / "artefacts.yaml", varied)
    found = assumed_settings([few, ring, line])
    assert [tuple(f[name] for name in ("study", "key", "value", "reason", "also", "because")) for f in found] == [
        ("other", "rounds", "3", "few", "", "that is enough"),
        ("toy", "dataset.noise", "0.5", "the paper gives none", "0.1; dataset.noise 1.0, rounds 3", ""),
        ("toy", "dataset.deep.er", "[1, 2]", "two of them", "", "there is no third"),
        ("toy", "algorithms.toy.variants.no fault", "{servers: 5}", "five", "true", ""),
    ]
    assert [f["experiments"] for f in found] == ["few", "line, ring", "line", "line"]
    assert [f["shown"] for f in found] == ["", "toy/a, toy/b", "toy/a", ""]
    assert assumed_settings([]) == []


BASE = """\
dataset: {noise: 0.50, size: 3}
algorithms:
  toy: {servers: 5, steps: 1.0e-4}
  ring: {servers: 5}
assumptions:
  dataset.noise: {why: none is given, also: [1.0]}
  dataset.size: {why: small, also: [2]}
  algorithms.*.servers: {why: five, also: [3]}
"""
OWN = """\
extends: _base
id: "{data}"
for_each:
  data:
    plain: {count: 10}
    other:
      count: 20
      assumptions:
        rounds: {why: twice as many, also: [40]}
rounds: "{count}"
dataset: {size: 4}
algorithms:
  toy: {servers: 7}
assumptions:
  rounds: {why: enough, also: [5]}
"""


def test_an_assumption_belongs_to_its_value(tmp_path):
    """Inherited and filled-in values keep it. A value that replaces another has its own or none."""
    folder = tmp_path / "toy" / "experiments"
    write_yaml(folder / "_base.yaml", BASE)
    write_yaml(folder / "both.yaml", OWN)
    write_yaml(folder / "plain_base.yaml", "extends: _base\n")
    found = assumed_settings([folder / "both.yaml", folder / "_base.yaml"])
    assert {(f["key"], f["value"], f["reason"], f["experiments"]) for f in found} == {
        ("dataset.noise", "0.50", "none is given", "other, plain"),
        ("rounds", "10", "enough", "plain"),
        ("rounds", "20", "twice as many", "other"),
        ("algorithms.ring.servers", "5", "five", "other, plain"),
    }
    keys = [f["key"] for f in assumed_settings([folder / "plain_base.yaml"])]
    assert keys == ["dataset.noise", "dataset.size", "algorithms.toy.servers", "algorithms.ring.servers"]


@pytest.mark.parametrize(
    ("assumption", "says"),
    [
        ("rounds: {why: few}", r"assumptions.rounds: needs also or because"),
        ("rounds: {also: [1]}", r"assumptions.rounds: 'why' is missing"),
        ("rounds: {why: few, also: []}", "assumptions.rounds.also"),
        ("round: {why: few, also: [1]}", "'round' is a setting of no experiment"),
    ],
)
def test_wrong_assumptions_are_errors(tmp_path, assumption, says):
    config = Path(write_config(tmp_path)["config"])
    with (config / "studies" / "toy" / "experiments" / "line.yaml").open("a") as file:
        file.write(f"assumptions:\n  {assumption}\n")
    with pytest.raises(UserError, match=says):
        load_experiments(config, "smoke")


def test_assumptions_change_no_job(tmp_path):
    config = Path(write_config(tmp_path)["config"])
    (before,) = load_experiments(config, "smoke").values()
    with (config / "studies" / "toy" / "experiments" / "line.yaml").open("a") as file:
        file.write("assumptions:\n  rounds: {why: few, also: [1]}\n")
    (after,) = load_experiments(config, "smoke").values()
    assert after.spec == before.spec
    assert after.job_sha256("fedavg") == before.job_sha256("fedavg")


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_no_assumption_hides_in_a_comment(study):
    for path in study.folder.glob("experiments/*.yaml"):
        assert "assumed" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_alternative_is_another_experiment_that_can_run(study):
    for name, e in expanded(ROOT / "config", study.name).items():
        raw = e.tree.plain()
        arms = raw["algorithms"].items()
        used = {name: [arm for arm, _ in arms] + [v for _, about in arms for v in about.get("variants", ())]}
        for assumption in assumptions_of({name: e}, used):
            for alternative in assumption.alternatives():
                change = alternative.changes[name]
                spec = varied(raw, change)
                validate(spec, "experiment", e.path)
                check_all([Experiment(study.name, name, "paper", e.path, resolve(spec, "paper", e.path))])
                different = {key for key, value in spec.items() if value != raw[key]} - {"title"}
                assert different == {key.partition(".")[0] for key in change}, (name, assumption.key)


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_what_an_artefact_varies_is_an_assumption(study):
    found = assumed_settings(study.folder.glob("experiments/*.yaml"))
    artefacts = read_yaml(study.file("artefacts.yaml"))
    for name, spec in artefacts.items():
        for part in spec.get("varies", []):
            assert any(f".{part}." in f".{a['key']}." for a in found), f"{name}: {part}"


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
