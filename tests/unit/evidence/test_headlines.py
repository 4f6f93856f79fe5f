"""Headlines: rolled up from the verdicts of the paper's own claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrepro.core.study import Headline, Study
from fedrepro.evidence import headlines
from fedrepro.evidence.headlines import roll_up
from tests.unit.evidence.made_up import consistency, judge_all, runs, threshold

SHORT = {"r": "reproduced", "d": "direction", "n": "not reproduced", "u": "undecided", "t": "not tested"}
SHORT |= {"c": "contradicted by the source"}


@pytest.mark.parametrize(
    ("rule", "verdicts", "expected"),
    [
        ("all", "rrr", "r"),
        ("all", "rrd", "d"),
        ("all", "rrn", "n"),
        ("all", "ttn", "n"),
        ("all", "rrc", "n"),
        ("all", "rru", "u"),
        ("all", "rrt", "u"),
        ("all", "ttt", "t"),
        ("most", "rrn", "r"),
        ("most", "rdn", "d"),
        ("most", "rn", "n"),
        ("most", "rrnn", "n"),
        ("most", "rtt", "u"),
        ("most", "ruu", "u"),
        ("most", "tt", "t"),
        ("any", "rnn", "r"),
        ("any", "dnn", "d"),
        ("any", "nnc", "n"),
        ("any", "nnt", "u"),
        ("any", "tu", "u"),
        ("any", "t", "t"),
    ],
)
def test_roll_up(rule, verdicts, expected):
    assert roll_up(rule, [SHORT[v] for v in verdicts]) == SHORT[expected]


def study(**rules) -> Study:
    made = {}
    for id, (claims, rule, decisive) in rules.items():
        made[id] = Headline(id, "It works.", "Abstract", "It works well.", tuple(claims), rule, decisive)
    return Study("toy", Path("toy"), "Toys", ("Ann",), "Toys 2020", "x", headlines=made, main="first")


CLAIMS = {
    "low_a": threshold(at_most=9),
    "low_b": threshold(at_most=0),
    "high_a": threshold(at_least=9),
    "sum_a": consistency() | {"origin": "printed"},
}


def test_headlines_count_the_papers_own_claims():
    about = study(first=(["*_a"], "any", None), second=(["low_*"], "decisive", "low_a"))
    judged = judge_all(CLAIMS, {"line": runs([1, 2, 3])}, study=about).headlines
    assert list(judged.columns) == headlines.COLUMNS
    first, second = judged.to_dict("records")
    assert (first["claims"], first["n"], first["verdict"]) == ("low_a high_a", 2, "reproduced")
    assert (first["reproduced"], first["not_reproduced"], first["undecided"], first["main"]) == (1, 1, 0, True)
    assert first["reason"] == "of 2 claims: 1 reproduced, 1 not reproduced"
    assert (second["rule"], second["verdict"], second["main"]) == ("decisive: low_a", "reproduced", False)
    assert second["reason"].startswith("low_a decides: reproduced; of 2 claims: ")


def test_a_headline_needs_all_its_claims():
    about = study(first=(["low_*"], "all", None), second=(["high_*"], "all", None))
    judged = judge_all(CLAIMS, {"line": runs([1, 2, 3])}, study=about, asked=["low_a", "high_a"])
    assert judged.ledger["claim"].tolist() == ["toy/low_a", "toy/high_a"]
    assert judged.headlines["headline"].tolist() == ["second"]
