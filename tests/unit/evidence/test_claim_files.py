"""Claims files: families, readings, defaults, places of values, and refusals of one line."""

from __future__ import annotations

import jsonschema
import pytest

from fedrepro.core.schemas import schema
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.evidence.claim_files import KINDS, load_claims, quantities_of
from fedrepro.files import ROOT

GOOD = """\
defaults: {origin: paper, measured_on: synthetic, margin: {absolute: 0.5}}
transforms: {accuracy: logit}
shared:
  table: {source: Table 1, kind: value, family: table1, tolerance: {relative: 0.1}}
axes:
  data:
    line: {label: a line}
    ring: {label: a ring, needs: {rounds: reach}}
claims:
  "{data}_{method}":
    extends: table
    for_each: {data: data, method: [toy, fedavg]}
    except: [ring_fedavg]
    only_for: {line_toy: {note: The first.}}
    statement: "On {label}, {method} has the loss 3."
    ours: {experiment: "{data}", algorithm: "{method}", metric: loss}
    published: "t1_{method}"
    reading: by the mean
    readings:
      by the median: {ours: {reduce: median}, tolerance: {absolute: 1}}
  "step_{step}":
    source: §2
    statement: It holds.
    kind: threshold
    for_each: {step: [1, 2]}
    ours: {experiment: line, algorithm: toy, metric: loss, round: "{step}"}
    at_most: {experiment: line, algorithm: fedavg, metric: loss}
  better:
    source: §3
    statement: Toy is better.
    kind: ordering
    better: {experiment: line, algorithm: toy, metric: loss}
    worse: {experiment: line, algorithm: fedavg, metric: loss}
    by: lower
    margin: {relative: 0.2}
  falls:
    source: §3
    statement: It falls.
    kind: trend
    ours: {experiment: line, algorithm: toy, metric: loss, along: gamma}
    direction: falling
  sum:
    source: §3
    origin: printed
    statement: It adds up.
    kind: consistency
    expression: (a + b) / 2
    numbers: {a: 1, b: table1/gain}
    stated: 1.5
    tolerance: {absolute: 0.05}
"""


def load(tmp_path, text=GOOD):
    path = tmp_path / "toy" / "claims.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return load_claims(path)


def test_families_are_filled_in(tmp_path):
    file = load(tmp_path)
    assert file.study == "toy"
    assert file.transforms == {"accuracy": "logit"}
    assert list(file.claims) == ["line_toy", "line_fedavg", "ring_toy", "step_1", "step_2", "better", "falls", "sum"]
    spec = file.claims["ring_toy"].spec
    assert spec == {
        "id": "ring_toy",
        "family": "table1",
        "origin": "paper",
        "measured_on": "synthetic",
        "source": "Table 1",
        "kind": "value",
        "tolerance": {"relative": 0.1},
        "statement": "On a ring, toy has the loss 3.",
        "ours": {"experiment": "ring", "algorithm": "toy", "metric": "loss"},
        "published": "t1_toy",
        "reading": "by the mean",
        "needs": {"rounds": "reach"},
    }
    assert file.claims["line_toy"].spec["note"] == "The first."
    assert "note" not in file.claims["line_fedavg"].spec
    assert file.claims["step_2"].spec["ours"]["round"] == 2  # a number stays a number


def test_a_default_holds_where_the_kind_has_the_key_and_is_replaced_as_a_whole(tmp_path):
    claims = load(tmp_path).claims
    assert "margin" not in claims["line_toy"].spec  # a value has none
    assert claims["step_1"].spec["margin"] == {"absolute": 0.5}
    assert claims["better"].spec["margin"] == {"relative": 0.2}
    assert claims["sum"].spec["origin"] == "printed"


def test_a_family_is_corrected_together(tmp_path):
    families = {id: claim.spec["family"] for id, claim in load(tmp_path).claims.items()}
    assert families["line_toy"] == families["ring_toy"] == "table1"
    assert families["step_1"] == families["step_2"] == "step_{step}"
    assert families["better"] == "better"


def test_a_reading_is_the_claim_with_changes(tmp_path):
    claim = load(tmp_path).claims["line_toy"]
    (reading,) = claim.readings.items()
    assert reading[0] == "by the median"
    changes = {"ours": {**claim.spec["ours"], "reduce": "median"}, "tolerance": {"absolute": 1}}
    assert reading[1] == {key: value for key, value in claim.spec.items() if key != "reading"} | changes


def test_every_value_knows_its_place(tmp_path):
    tree = load(tmp_path).claims["ring_toy"].tree
    lines = GOOD.splitlines()
    assert lines[tree.at("needs", "rounds").places[0].line - 1].startswith("    ring: ")
    assert lines[tree.at("source").places[0].line - 1].startswith("  table: ")
    assert lines[tree.at("measured_on").places[0].line - 1].startswith("defaults: ")
    assert lines[tree.at("ours", "metric").places[0].line - 1].startswith("    ours: ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("defaults:", "default:", "unknown key 'default'; did you mean 'defaults'?"),
        ("extends: table", "extends: tabel", "'tabel' is unknown; did you mean 'table'?"),
        ("{data: data, ", "{data: dta, ", "there is no axis 'dta'; did you mean 'data'?"),
        ("[ring_fedavg]", "[ring_fedavgg]", "'ring_fedavgg' is none of its claims; did you mean 'ring_fedavg'?"),
        ("{line_toy: {note", "{line_toi: {note", "'line_toi' is none of its claims; did you mean 'line_toy'?"),
        ("t1_{method}", "t1_{metod}", "{metod} has no value; did you mean 'method'?"),
        ("{reduce: median}", "{reduc: median}", "unknown key 'line_toy.readings.by the median.ours.reduc'"),
        ("by: lower", "by: less", "better.by: 'less' is unknown"),
        ("kind: ordering", "kind: odering", "better.kind: 'odering' is unknown; did you mean 'ordering'?"),
        ("origin: paper, ", "", "line_toy: 'origin' is missing"),
        ("{relative: 0.2}", "{relative: 0.2, absolute: 1}", "better.margin: needs exactly one of absolute, relative"),
        ("needs: {rounds: reach}", "needs: {rounds: rech}", "ring_toy.needs.rounds: 'rech' is unknown; did you mean"),
        ("(a + b) / 2", "(a + bb) / 2", "sum.expression: 'bb' is not one of the given numbers; did you mean 'b'?"),
        ("(a + b) / 2", "a.b", "sum.expression: 'a.b' is not allowed"),
        ("along: gamma", "round: 1", "falls.ours: 'along' is missing"),
        ("  falls:", "  step_1:", "the id 'step_1' is there twice"),
        ("    at_most:", "    at_least: 1\n    at_most:", "step_1: needs exactly one of at_most, at_least"),
        ("label: a line}", "label: {a: 1}}", "for_each.data.line.label: is not a key"),
        (GOOD, "- 1", "the file: [1] is not of type object"),
        (GOOD, "claims: {}", "claims: "),
        (GOOD, "claims: [", "line 2"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, old, new, words):
    assert old in GOOD
    with pytest.raises(UserError) as refused:
        load(tmp_path, GOOD.replace(old, new, 1))
    text = str(refused.value)
    assert str(tmp_path / "toy" / "claims.yaml") in text
    assert words in text
    assert "\n" not in text
    assert len(text) < 400


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"no\.yaml: no such file"):
        load_claims(tmp_path / "no.yaml")


def test_a_product_that_is_too_large_is_refused(tmp_path):
    many = "[" + ", ".join(map(str, range(600))) + "]"
    with pytest.raises(UserError, match="600 claims, at most 500"):
        load(tmp_path, GOOD.replace("{step: [1, 2]}", f"{{step: {many}}}"))


def test_the_schema_is_valid_and_closed():
    rules = schema("claim")
    jsonschema.Draft202012Validator.check_schema(rules)
    for name in (*KINDS, "quantity", "curve", "borrow"):
        assert rules["$defs"][name]["additionalProperties"] is False
    assert {branch["then"]["$ref"] for branch in rules["allOf"]} == {f"#/$defs/{kind}" for kind in KINDS}


def test_every_quantity_of_a_claim_is_found(tmp_path):
    found = {id: set(quantities_of(claim.spec)) for id, claim in load(tmp_path).claims.items()}
    assert found["better"] == {("line", "toy"), ("line", "fedavg")}
    assert found["step_1"] == {("line", "toy"), ("line", "fedavg")}
    assert found["sum"] == set()


@pytest.mark.parametrize("study", load_studies(ROOT / "config").values(), ids=lambda study: study.name)
def test_the_paper_counts_in_headlines_only(study):
    """The committed studies: five to eight headlines, on claims of the paper."""
    assert 5 <= len(study.headlines) <= 8
    claims = load_claims(study.folder / "claims.yaml").claims.values()
    assert {claim.spec["origin"] for claim in claims} <= {"paper", "printed", "added"}
    assert all(len(headline.quote) <= 300 for headline in study.headlines.values())
