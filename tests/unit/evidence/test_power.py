"""What to run next: power as simulated, and times that read back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.evidence.decisive import Gap
from fedrepro.evidence.intervals import Sample
from fedrepro.evidence.power import Plan, growth, seconds_in, seconds_per_seed, told
from fedrepro.evidence.verdicts import REPRODUCED, decide, rule_ordering, rule_value
from tests.unit.evidence.made_up import judge_all, normal, ordering, runs, threshold, value, verdict_of

DRAWS = 2000


def test_power_is_that_of_tables():
    # Cohen: an effect of one standard deviation, two-sided 5 %, 80 %: ten seeds; of half of one: 34
    assert Plan(1.0, 1.0).seeds() == 10
    assert Plan(0.5, 1.0).seeds() == 34
    assert Plan(1.0, 1.0).power(10) == pytest.approx(0.803, abs=0.002)
    assert Plan(1.0, 0.0).seeds() == 3
    assert Plan(0.0, 1.0).seeds() is None
    assert Plan(1.0, 1.0).seeds(0.05 / 10) > Plan(1.0, 1.0).seeds()
    assert Plan(1.0, 1.0, printed_se=0.5, printed_runs=30).seeds() is None  # no number of seeds tells the print better


@pytest.mark.parametrize("effect", [0.5, 1.0, 2.0])
def test_the_smallest_difference_that_matters_is_found_as_often_as_planned(effect):
    n = Plan(effect, 1.0).seeds()
    rng = np.random.default_rng(n)
    found = [decide(Sample.of(x), rule_ordering(effect)).verdict for x in rng.normal(effect, 1.0, size=(DRAWS, n))]
    assert found.count(REPRODUCED) / DRAWS == pytest.approx(Plan(effect, 1.0).power(n), abs=0.05)
    assert Plan(effect, 1.0).power(n) >= 0.8


@pytest.mark.parametrize("tolerance", [0.5, 1.0])
def test_a_printed_value_is_held_as_often_as_planned(tolerance):
    plan = Plan(tolerance, 1.0, both=True)
    n = plan.seeds()
    rng = np.random.default_rng(n)
    rule = rule_value(-tolerance, tolerance, "0")
    found = [decide(Sample.of(x), rule).verdict for x in rng.normal(size=(DRAWS, n))]
    assert found.count(REPRODUCED) / DRAWS == pytest.approx(plan.power(n), abs=0.05)


def test_an_undecided_claim_says_how_many_seeds_more():
    # spread 1 at margin 1: ten seeds; there are four, of a minute for each of the two methods
    tables = runs(normal(0.0, 1.0, 4)), runs([0.3] * 4, "fedavg")
    row = verdict_of(ordering(margin={"absolute": 1}), *tables)
    assert (row["verdict"], row["next"]) == ("undecided", "6 more seeds, about 12 min")
    assert verdict_of(ordering(), *tables)["next"].startswith("86 more seeds")  # 90 for the effect seen, 0.3
    assert verdict_of(value(), runs([160]))["next"] == "2 more seeds, about 2 min"
    still = verdict_of(threshold(at_most=160), runs(normal(160, 1, 5)))
    assert still["next"] == "no feasible number of seeds"


def test_a_value_near_the_edge_needs_the_seeds_of_the_distance_seen():
    # The tolerance of 8 is shown by 4 seeds of spread 1 already; the mean is 0.2 from the edge: 199 seeds.
    row = verdict_of(value(), runs(normal(167.8, 1.0, 10)))
    assert (row["verdict"], row["next"]) == ("undecided", "189 more seeds, about 3.1 h")
    assert Plan(8.0, 1.0, both=True).seeds() == 3
    assert Plan(0.2, 1.0).seeds() == 199


def test_a_family_shares_its_alpha():
    claims = {name: threshold(at_most=1, margin={"absolute": 1}) | {"family": "t"} for name in "abcdefgh"}
    rows = judge_all(claims, {"line": runs(normal(1.5, 1, 4))}).ledger
    assert set(rows["verdict"]) == {"undecided"}
    assert (
        rows["next"][0]
        == f"{Plan(1.0, 1.0).seeds(0.05 / 8) - 4} more seeds, about {Plan(1, 1).seeds(0.05 / 8) - 4} min"
    )


@pytest.mark.parametrize(
    ("gaps", "local", "factor"),
    [
        ([], {"epochs": 1}, 1),
        ([Gap("rounds", 20, 100)], {"epochs": 1}, 5),
        ([Gap("rounds", 20, 100), Gap("dataset.train", 400, 800)], {"epochs": 1}, 10),
        ([Gap("rounds", 20, 100), Gap("dataset.train", 400, 800)], {"steps": 1}, 5),
        ([Gap("partition.clients", 4, 8)], {"steps": 1}, 2),
        ([Gap("partition.clients", 4, 8)], {"epochs": 1}, 1),
        ([Gap("model.width", 4, 64)], {"epochs": 1}, 256),
        ([Gap("model.name", "a", "b"), Gap("algorithms.toy.steps", 1, 9)], {"epochs": 1}, 1),
    ],
)
def test_the_time_grows_with_the_arithmetic(gaps, local, factor):
    assert growth(gaps, {"local": local}) == factor


def test_seconds_per_seed():
    assert seconds_per_seed([{"seconds": 8, "seeds": [0, 1]}, {"seconds": 7, "seeds": [2]}]) == 5
    assert math.isnan(seconds_per_seed([]))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "about 1 s"), (89, "about 89 s"), (180, "about 3 min"), (7200, "about 2.0 h"), (3.6e7, "about 10,000 h")],
)
def test_times_read_back(seconds, text):
    assert told(seconds) == text
    assert seconds_in(f"12 more seeds, {text}") == pytest.approx(seconds, abs=1)


def test_an_unknown_time_comes_last():
    assert told(math.nan) == ""
    assert seconds_in("a run of line") == math.inf
    assert seconds_in("") == math.inf
