"""From rows of a tidy table to one number per seed."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from scipy.stats import spearmanr

from fedrepro.evidence.quantities import Measurements, Untested
from tests.unit.evidence.made_up import OURS, curves, grid, runs, threshold, trend, verdict_of


def measured(table, manifests=(), **keys):
    return Measurements("toy", {"line": table}, manifests).of({**OURS, **keys})


def number(table, **keys) -> list[float]:
    return measured(table, **keys).values.tolist()


def test_quantity_rounds_and_reductions():
    table = curves([[1, 2, 6], [10, 20, 60]], [0, 5, 10])
    assert number(table) == [6, 60]
    assert number(table, round="first") == [1, 10]
    assert number(table, round=5) == [2, 20]
    assert number(table, round="all") == [3, 30]
    assert number(table, round="all", reduce="median") == [2, 20]
    assert number(table, round="all", reduce="max") == [6, 60]
    assert number(table, round="all", reduce="min") == [1, 10]
    # Population spread of 1, 2, 6: sqrt((4 + 1 + 9) / 3).
    assert number(table, round="all", reduce="std") == pytest.approx([math.sqrt(14 / 3), 10 * math.sqrt(14 / 3)])
    assert number(table, reduce="std") == [0, 0]


def test_the_last_round_is_that_of_each_run():
    table = pd.concat([curves([[1, 2, 6]], [0, 5, 10]), curves([[3, 4]], [0, 5]).assign(seed=1)])
    assert number(table) == [6, 4]


def test_quantity_clients_and_groups():
    table = pd.concat([runs([1], client=0, group="a"), runs([3], client=1, group="a"), runs([8], client=2, group="b")])
    assert number(table) == [4]
    assert number(table, client=1) == [3]
    assert number(table, group="a") == [2]
    assert number(table, reduce="max") == [8]
    both = pd.concat([table.assign(group=""), runs([100])])
    assert number(both, client="all") == [4]
    assert number(both, client=-1) == [100]


def test_overall_rows_are_not_averaged_with_those_of_clients():
    table = pd.concat([runs([1, 1]), runs([3, 3], client=0)])
    with pytest.raises(Untested, match="must say which client: toy/line has '-1', '0'"):
        number(table)


def test_splits_and_settings_are_not_averaged():
    with pytest.raises(Untested, match="must say which split: toy/line has 'test', 'train'"):
        number(pd.concat([runs([1, 1]), runs([3, 3], split="train")]))
    with pytest.raises(Untested, match="must say which setting"):
        number(grid([[1, 2]], [0.1, 0.5]))


def test_all_settings_where_the_claim_says_so_and_for_a_worst_case():
    table = grid([[1, 2, 6], [4, 5, 9], [1, 2, 3]], [0.1, 0.5, 0.9])
    assert number(table, setting="all") == [3, 6, 2]
    assert number(table, reduce="max") == [6, 9, 3]
    assert number(table, reduce="min") == [1, 4, 1]
    assert number(table, setting="gamma=0.5", reduce="max") == [2, 5, 2]
    claim = threshold(ours={**OURS, "reduce": "max"}, at_most=9, every_seed=True)
    assert verdict_of(claim, table)["verdict"] == "reproduced"
    table.loc[0, "diverged"] = True
    row = verdict_of(claim, table)
    assert row["verdict"] == "not reproduced"
    assert "1 of 9 runs diverged" in row["reason"]


def test_trend_over_all_other_settings():
    names = [f"{gamma},steps={steps}" for gamma in (1, 2, 3) for steps in (1, 2)]
    # Means over steps at gamma 1, 2, 3: 5, 6, 7; along either step alone the order is not monotone.
    table = grid([[1, 9, 8, 4, 2, 12]] * 3, names)
    assert verdict_of(trend("gamma", "rising", setting="all"), table)["ci_low"] == pytest.approx(1.0)
    # Ranks of 1, 8, 2 against 1, 2, 3: ρ = 1 − 6·(0 + 1 + 1) / (3·8) = 0.5.
    assert verdict_of(trend("gamma", "rising", setting="steps=1"), table)["ci_low"] == pytest.approx(0.5)


def test_rank_correlations_are_those_of_scipy():
    values = [3.0, 1.0, 2.0, 2.0, 5.0, 4.0]
    table = curves([values], range(6))
    assert number(table, along="round") == [pytest.approx(spearmanr(range(6), values).statistic)]


def test_quantity_setting_may_name_some_of_the_pairs():
    table = grid([[1, 2, 3]], ["0.1,steps=5", "0.5,steps=5", "0.1,steps=50"])
    assert number(table, setting="steps=5,gamma=0.5") == [2]
    assert number(table, setting="steps=50") == [3]
    with pytest.raises(Untested, match="must say which setting"):
        number(table, setting="gamma=0.1")
    exact = pd.concat([table, grid([[7]], ["0.1"])])
    assert number(exact, setting="gamma=0.1") == [7]


def test_what_is_left_out_is_known_by_seed():
    table = pd.concat([runs([1, None, 3]), runs([9, 9, 9], metric="other").assign(seed=[0, 1, 3])])
    found = measured(table)
    assert found.values.to_dict() == {0: 1.0, 2: 3.0}
    assert (found.seeds, found.runs, found.diverged, found.lost, found.absent) == (4, 4, 1, (1,), 1)
    assert found.losses(" of toy") == (
        "; 1 of 4 runs of toy diverged (25 %), median of the rest 2; 1 of 4 seeds of toy without a value"
    )


def test_the_time_of_a_run_is_its_share_of_its_jobs():
    """Two jobs of two settings each: 8 s for two seeds, 6 s for one."""
    table = pd.concat([runs([1, 2, 3], setting=setting) for setting in ("a", "b")], ignore_index=True)
    jobs = [
        {"algorithm": "toy", "seeds": [0, 1], "seconds": 8.0},
        {"algorithm": "toy", "seeds": [2], "seconds": 6.0},
        {"algorithm": "another", "seeds": [0], "seconds": 99.0},
    ]
    jobs = [{"experiment": "toy/line", "settings": {}, **job} for job in jobs]
    assert measured(table, jobs, metric="seconds", setting="a").values.to_dict() == {0: 2.0, 1: 2.0, 2: 3.0}
    assert measured(table, jobs, setting="b").values.to_dict() == {0: 1.0, 1: 2.0, 2: 3.0}


def test_the_runs_of_a_variant_are_those_of_its_algorithm():
    job = {"experiment": "toy/line", "algorithm": "arms", "seeds": [0], "seconds": 1.0}
    job["settings"] = {"toy,gamma=1": {"variant": "toy", "method": "toy", "grid": {"gamma": 1}}}
    own = {**job, "algorithm": "fedavg", "settings": {}}
    found = Measurements("toy", {}, [job, own])
    assert found.manifests(OURS) == [job]
    assert found.manifests({**OURS, "algorithm": "fedavg"}) == [own]
    assert found.manifests({**OURS, "algorithm": "none"}) == []
