"""Rounds to an accuracy, the inequality of the weights, and the terms of the bound, by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS, rows
from fedrepro.studies.omni.measures import DELTA, choose, deviation_terms, measure, rounds_to, weights


def test_rounds_to_an_accuracy_is_the_first_round_that_has_it():
    curve = pd.Series([0.1, 0.82, 0.79, 0.9], index=[0, 10, 20, 30])
    assert [rounds_to(curve, target) for target in (0.1, 0.8, 0.82, 0.9, 0.91)] == [0, 10, 10, 30, 31]


def test_how_unequal_the_weights_are():
    omega = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 1.5], [2.0, 2.0, 2.0]])
    overlap = np.array([[1.0, 0.1, 0.2], [0.1, 1.0, 0.15], [0.3, 0.35, 1.0]])
    found = weights(omega, overlap)
    assert found["omega_ratio"] == 4  # node 0: 4 over 1
    assert found["omega_ratio_others"] == 2  # node 0 without itself: 2 over 1
    assert found["omega_own_over_others"] == pytest.approx((4 / 1.5 + 3 / 1.25 + 1) / 3)
    # (overlap, ω) of the six pairs: ranks of the overlap against those of ω, with ties in both
    x, y = [1.5, 4, 1.5, 3, 5, 6], [1.5, 5, 1.5, 3, 5, 5]
    assert found["omega_overlap"] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_the_deviation_term_as_printed_and_as_mcdiarmid_has_it():
    printed, corrected = deviation_terms(np.array([[1.0, 2.0], [1.0, 1.0]]), np.array([10.0, 20.0]))
    factor = math.log(1 / DELTA) / 2
    assert printed == pytest.approx(math.sqrt(factor * (1 / 100 + 4 / 400)))
    assert corrected == pytest.approx(math.sqrt(factor * (1 / 10 + 4 / 20)))


def table(setting: str = "", seed: int = 0, diverged: bool = False, **runs: list[tuple]) -> pd.DataFrame:
    """algorithm → (metric, round, client, step, split, value)."""
    lines = [
        {"algorithm": name, "metric": m, "round": t, "client": k, "step": s, "split": split, "value": value}
        for name, found in runs.items()
        for m, t, k, s, split, value in found
    ]
    about = {"experiment": "omni/x", "setting": setting, "seed": seed, "group": "", "data": "real"}
    return pd.DataFrame(lines).assign(**about, diverged=diverged)[TABLE_COLUMNS]


def ends(validation: float, test: float = 0.5, loss: float = 1.0) -> list[tuple]:
    """A run of ten rounds."""
    accuracy = {"train": 0.9, "validation": validation, "test": test}
    lines = [("accuracy", t, -1, 0, split, v if t else 0.1) for t in (0, 10) for split, v in accuracy.items()]
    return lines + [("loss", t, -1, 0, split, loss if t else 4.0) for t in (0, 10) for split in accuracy]


def test_measures_of_a_run():
    accuracy = [("accuracy", t, -1, 0, "test", v) for t, v in ((0, 0.1), (5, 0.84), (10, 0.86))]
    accuracy += [("accuracy", t, -1, 0, "train", v) for t, v in ((0, 0.2), (5, 0.9), (10, 0.98))]
    accuracy += [("accuracy", t, -1, 0, "validation", 0.8) for t in (0, 5, 10)]
    accuracy += [("loss", t, -1, 0, split, v) for t, v in ((0, 2.0), (10, 0.5)) for split in ("train", "validation")]
    pairs = [(i, j) for i in range(2) for j in range(2)]
    sizes = [("samples", 0, k, 0, "train", 50.0) for k in range(2)]
    overlap = [("overlap", 0, i, j, "", 1.0 if i == j else 0.5) for i, j in pairs]
    early = [("omega", 1, i, j, "", 100.0) for i, j in pairs] + [("cross_loss", 1, i, j, "", 0.01) for i, j in pairs]
    end = [("omega", 10, i, j, "", 4.0 if i == j else 2.0) for i, j in pairs]
    end += [("cross_loss", 10, i, j, "", 0.25 if i == j else 0.5) for i, j in pairs]
    ones = [*accuracy, *sizes, *overlap]
    found = measure(table(omni_fedge=[*ones, *early, *end], omni_fedge_ones=ones, fedsgd=accuracy))

    def value(metric: str, algorithm: str = "omni_fedge") -> float:
        return rows(found, metric, algorithm=algorithm)["value"].item()

    assert [value(f"rounds_to_{p}") for p in (80, 85, 90)] == [5, 10, 11]
    assert value("rounds_to_80", "fedsgd") == value("exchanges_to_80", "fedsgd") == 5
    assert value("exchanges_to_80") == 15
    assert value("test_accuracy") == value("chosen_test_accuracy") == 0.86
    assert value("generalisation_gap") == pytest.approx(0.12)
    assert value("loss_ratio") == 0.25
    assert value("omega_ratio") == 2  # of the last fifth, not of round 1
    assert value("objective") == pytest.approx(2 - math.log(4) - math.log(2))
    assert value("deviation_corrected") == pytest.approx(math.sqrt(math.log(20) / 2 * (16 + 4) / 50))
    assert rows(found, "omega_ratio", algorithm="fedsgd").empty
    assert rows(found, "omega_ratio", algorithm="omni_fedge_ones").empty
    assert set(found["split"]) == {"derived"}


def test_the_step_is_chosen_seed_by_seed_on_validation_data():
    tables = [
        table("lr=1", 0, omni_fedge=ends(0.7, test=0.6)),
        table("lr=2", 0, omni_fedge=ends(0.8, test=0.5)),  # the best on validation, not on test data
        table("lr=1", 1, omni_fedge=ends(0.7, loss=0.9)),
        table("lr=2", 1, omni_fedge=ends(0.7, loss=0.8)),  # as accurate, with less loss
        table("lr=1", 2, omni_fedge=ends(0.6)),
        table("lr=2", 2, diverged=True, omni_fedge=ends(0.9)),
        table("", 2, fedsgd=ends(0.3)),
    ]
    found = choose(pd.concat(tables))
    chosen = {(line.algorithm, line.seed): line.setting for line in found.itertuples()}
    assert chosen == {
        ("omni_fedge", 0): "lr=2",
        ("omni_fedge", 1): "lr=2",
        ("omni_fedge", 2): "lr=1",
        ("fedsgd", 2): "",
    }
    measured = rows(measure(pd.concat(tables)), "chosen_test_accuracy", algorithm="omni_fedge", seed=0)
    assert (measured["setting"].item(), measured["value"].item()) == ("lr=2", 0.5)
