"""The ledger and the tables beside it: columns, families, readings, numbers, merging."""

from __future__ import annotations

import math
import time

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence import ledger
from tests.unit.evidence.made_up import (
    OURS,
    consistency,
    curves,
    judge_all,
    normal,
    ordering,
    runs,
    threshold,
    trend,
    value,
    verdict_of,
)

COLUMNS = (
    "claim study origin source kind family statement paper_says our_test ours ci_low ci_high p p_holm p_flip p_printed "
    "verdict reason hint evidence data scale seeds reading next"
)


def test_columns_and_verdicts_are_those_of_the_contract():
    assert " ".join(ledger.COLUMNS) == COLUMNS
    assert ledger.VERDICTS == (
        "reproduced",
        "direction",
        "not reproduced",
        "undecided",
        "contradicted by the source",
        "not tested",
    )


def test_every_claim_has_a_row_in_file_order():
    claims = {"z": value(), "a": value(ours={**OURS, "metric": "nothing"}), "m": consistency()}
    result = judge_all(claims, {"line": runs([160, 160, 160])}, scale="smoke").ledger
    assert result["claim"].tolist() == ["toy/z", "toy/a", "toy/m"]
    assert result["verdict"].tolist() == ["reproduced", "not tested", "reproduced"]
    assert judge_all(claims, {}, asked=["m"]).ledger["claim"].tolist() == ["toy/m"]


def test_a_row_carries_what_a_reader_needs():
    row = verdict_of(value(note="Our grid is coarser.", family="table1"), runs([160, 161, 162]))
    assert (row["source"], row["statement"], row["study"], row["scale"]) == ("Fig. 1", "It is so.", "toy", "demo")
    assert (row["data"], row["seeds"], row["kind"], row["family"]) == ("synthetic", 3, "value", "table1")
    assert (row["origin"], row["evidence"]) == ("paper", "published settings")
    assert row["reason"].endswith("; Our grid is coarser.")
    assert row["our_test"] == "loss of toy within 160 ± 8"


def test_what_the_paper_says():
    assert verdict_of(value(quote="after 160 epochs"), runs([1]))["paper_says"] == "after 160 epochs"
    assert verdict_of(value(), runs([1]))["paper_says"] == "160"
    assert verdict_of(ordering(), runs([1]))["paper_says"] == "It is so."
    assert verdict_of(value(published="gone"), runs([1]))["paper_says"] == "It is so."


def test_our_test_in_words():
    claim = ordering(margin={"relative": 0.05}, published=2, tolerance={"relative": 0.1})
    words = "loss: toy lower than fedavg by more than 0 (differences below 5 % do not matter); by 2 ± 10 %"
    assert verdict_of(claim)["our_test"] == words
    assert verdict_of(trend(margin=0.3))["our_test"] == "loss of toy falls with round: rank correlation beyond −0.3"
    chosen = value(ours={**OURS, "setting": "gamma=1"}, direction={"above": 3})
    assert verdict_of(chosen)["our_test"] == "loss of toy (gamma=1) within 160 ± 8; direction: above 3"


# Families


def family(limits, **keys):
    return {f"c{i}": threshold(at_most=limit, family="table1", **keys) for i, limit in enumerate(limits)}


def test_a_family_is_corrected_together():
    # mean 0, spread 1, 9 seeds: t = 3·limit with 8 df; p(0.9) = 0.027, p(5) = 3e-7
    table = {"line": runs(normal(0.0, 1.0, 9))}
    alone = judge_all(family([0.9]), table).ledger.iloc[0]
    assert (alone["verdict"], alone["p_holm"]) == ("reproduced", pytest.approx(alone["p"]))
    rows = judge_all(family([0.9, 0.9, 5.0]), table).ledger
    assert rows["verdict"].tolist() == ["undecided", "undecided", "reproduced"]
    assert rows["p_holm"].tolist() == pytest.approx([2 * alone["p"], 2 * alone["p"], 3 * rows["p"][2]])
    assert "by itself p = 0.027, not after correction for 3 claims" in rows["reason"][0]


def test_what_is_not_tested_does_not_count_in_a_family():
    table = {"line": runs(normal(0.0, 1.0, 9))}
    claims = family([0.9]) | {"gone": threshold(ours={**OURS, "metric": "x"}, at_most=1, family="table1")}
    claims["every"] = threshold(at_most=9, every_seed=True, family="table1")
    rows = judge_all(claims, table).ledger
    assert rows["verdict"].tolist() == ["reproduced", "not tested", "reproduced"]
    assert rows["p_holm"][0] == rows["p"][0]
    assert rows["p_holm"][1:].isna().all()


def test_sign_flips_stand_beside_from_six_seeds():
    def row(n):
        return verdict_of(ordering(), runs(range(n)), runs(np.arange(n) + 1.0 + np.arange(n) % 3, "fedavg"))

    assert row(6)["p_flip"] == 2 / 64
    assert math.isnan(row(5)["p_flip"])
    assert row(6)["p"] < 0.05


# Readings


def test_readings_are_judged_and_flips_are_told():
    table = {"line": pd.concat([runs([1, 2, 3]), runs([11, 12, 13], metric="other")])}
    readings = {
        "c": {"wide": {"at_most": 100}, "other": {"ours": {**OURS, "metric": "other"}}, "gone": {"at_most": "x"}}
    }
    judged = judge_all({"c": threshold(at_most=9)}, table, readings=readings)
    assert judged.ledger["reading"].tolist() == ["flips: other → not reproduced"]
    assert judged.readings["reading"].tolist() == ["wide", "other", "gone"]
    assert judged.readings["verdict"].tolist() == ["reproduced", "not reproduced", "not tested"]
    assert list(judged.readings.columns) == ledger.COLUMNS
    same = judge_all({"c": threshold(at_most=9)}, table, readings={"c": {"wide": {"at_most": 100}}})
    assert same.ledger["reading"].tolist() == ["stable over 1 other reading"]
    two = judge_all({"c": threshold(at_most=9)}, table, readings={"c": {"a": {"at_most": 99}, "b": {"at_most": "x"}}})
    assert two.ledger["reading"].tolist() == ["stable over 1 other reading, 1 other not tested"]
    assert judge_all({"c": threshold(at_most=9)}, table).ledger["reading"].tolist() == [""]


def test_the_readings_of_one_claim_are_not_told_in_another():
    table, readings = {"line": runs([1, 2, 3])}, {"a": {"low": {"at_most": -9}}}
    judged = judge_all({"a": threshold(at_most=9), "b": threshold(at_most=9)}, table, readings=readings)
    assert judged.ledger["reading"].tolist() == ["flips: low → not reproduced", ""]


def test_a_reading_is_corrected_in_place_of_its_main_one():
    table = {"line": runs(normal(0.0, 1.0, 9))}
    judged = judge_all(family([5.0, 5.0]), table, readings={"c0": {"near": {"at_most": 0.9}}})
    near = judged.readings.iloc[0]
    assert near["p_holm"] == pytest.approx(near["p"])  # the larger of two
    assert judged.ledger["verdict"].tolist() == ["reproduced", "reproduced"]


# Numbers


def test_the_numbers_behind_every_verdict_are_kept():
    table = {"line": pd.concat([runs([1, None, 3, 5]), runs([2, 3, 4, 5], "fedavg")])}
    judged = judge_all({"c": ordering()}, table, readings={"c": {"same": {}}})
    own = judged.numbers[judged.numbers["reading"] == ""]
    assert list(own.columns) == ["claim", "reading", "quantity", "seed", "value", "diverged"]
    better = own[own["quantity"] == "better"].set_index("seed")
    assert better["value"].dropna().to_dict() == {0: 1.0, 2: 3.0, 3: 5.0}
    assert better["diverged"].to_dict() == {0: False, 1: True, 2: False, 3: False}
    assert own[own["quantity"] == "worse"]["value"].tolist() == [2, 3, 4, 5]
    assert set(judged.numbers["reading"]) == {"", "same"}


# All of it


def test_the_ledger_is_the_same_to_the_byte():
    claims = {f"c{i}": claim for i, claim in enumerate([value(), ordering(), threshold(at_most=1), trend()])}
    table = curves(np.random.default_rng(0).normal(size=(20, 5)).tolist(), range(5))
    table = pd.concat([table, table.assign(algorithm="fedavg", value=table["value"] + 0.3)], ignore_index=True)
    before = table.copy()

    def text(rows):
        return judge_all(claims, {"line": rows}).ledger.to_csv(index=False)

    first = text(table)
    assert text(table) == first
    assert text(table.sample(frac=1, random_state=1)) == first
    assert text(table.assign(value=table["value"] * 1.01)) != first
    pd.testing.assert_frame_equal(table, before)


def test_ledgers_are_merged_with_their_other_tables(tmp_path):
    first = judge_all({"a": value()}, {"line": runs([1, 2, 3])}, readings={"a": {"x": {}}})
    second = judge_all({"a": value(), "b": value()}, {"line": runs([1, 2, 3])})
    for name, judged in (("toy/fig1", first), ("toy/fig2", second)):
        for kind in ("ledgers", "readings", "headlines"):
            path = tmp_path / kind / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            getattr(judged, kind.replace("ledgers", "ledger")).to_csv(path, index=False)
    ledgers = [tmp_path / "ledgers" / "toy" / f"fig{i}.csv" for i in (1, 2)]
    ledger.merge(ledgers, tmp_path / "ledger.csv")
    assert pd.read_csv(tmp_path / "ledger.csv")["claim"].tolist() == ["toy/a", "toy/b"]
    ledger.merge(ledgers, tmp_path / "readings.csv", "readings")
    assert pd.read_csv(tmp_path / "readings.csv")["reading"].tolist() == ["x"]
    ledger.merge(ledgers, tmp_path / "headlines.csv", "headlines")
    assert "says" in pd.read_csv(tmp_path / "headlines.csv").columns
    ledger.merge([], tmp_path / "none.csv")
    assert list(pd.read_csv(tmp_path / "none.csv").columns) == ledger.COLUMNS


def test_judging_takes_milliseconds_per_claim():
    """A hundred claims over 20,000 rows: a table is cut once, not once per quantity."""
    table = curves(np.random.default_rng(1).normal(size=(20, 500)).tolist(), range(500))
    table = pd.concat([table, table.assign(algorithm="fedavg")], ignore_index=True)
    claims = {f"c{i}": ordering(better={**OURS, "round": i}) for i in range(100)}
    begin = time.process_time()
    judged = judge_all(claims, {"line": table})
    assert time.process_time() - begin < 5
    assert len(judged.ledger) == 100
