"""The measures of federated SGLD against numbers worked by hand, and on a short run."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.core.federation import LocalWork
from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.sgld import measures
from fedrepro.studies.sgld.algorithms.fed_sgld import FedSGLD
from fedrepro.studies.sgld.algorithms.fed_sgld_coupled import FedSGLDCoupled
from fedrepro.studies.sgld.measures import epsilon
from tests.builders import RAGGED, federations, make_plan, make_task, run


def made_up(train, test=None, rounds=None, **metrics) -> pd.DataFrame:
    """One run with these losses by round, and rows (metric, round, client, step) → value of `metrics`."""
    rounds = range(len(train)) if rounds is None else rounds
    found = [{"round": r, "metric": "loss", "split": "train", "value": v} for r, v in zip(rounds, train, strict=True)]
    if test is not None:
        found += [
            {"round": r, "metric": "loss", "split": "test", "value": v} for r, v in zip(rounds, test, strict=True)
        ]
    # a single node, which no measure may take for the mean
    found.append({"round": max(rounds), "metric": "loss", "split": "train", "value": 99.0, "client": 0})
    for metric, values in metrics.items():
        for i, value in enumerate(values):
            place = {"samples": {"client": i, "round": 1}, "step_size": {"step": i, "round": 1}}
            found.append({"metric": metric, "split": "", "value": value, **place.get(metric, {"round": i})})
    frame = pd.DataFrame(found)
    for column, value in (("client", -1), ("step", 0)):
        frame[column] = frame[column].fillna(value).astype(int) if column in frame else value
    frame = frame.assign(experiment="sgld/low", algorithm="fed_sgld", setting="", seed=0, group="")
    return frame.assign(data="synthetic", diverged=False)[TABLE_COLUMNS]


def measured(frame: pd.DataFrame) -> dict[str, float]:
    found = measures.measure(frame)
    assert list(found) == TABLE_COLUMNS
    assert (found["split"] == "derived").all()
    assert (found["round"] == frame["round"].max()).all()
    return found.set_index("metric")["value"].to_dict()


def test_the_curve_by_hand():
    # rounds 0 … 30: the last tenth are rounds 28, 29, 30; roughness looks at rounds 11 … 30
    train = np.linspace(5, 2, 31)
    train[5] = 50.0  # an early spike does not count
    train[20] += 0.7
    found = measured(made_up(train, train + 0.25))
    assert found["late_loss"] == pytest.approx(train[28:].mean(), rel=1e-14)
    assert found["generalisation_gap"] == pytest.approx(0.25, rel=1e-12)
    # a spike s in a line has third differences s, −3s, 3s, −s: 20 s² over all 17
    assert found["roughness"] == pytest.approx(0.7 * math.sqrt(1 / 17), rel=1e-9)


def test_a_curve_that_was_not_seen_every_round_has_no_roughness():
    found = measured(made_up([3.0, 2.5, 2.2, 2.1, 2.0, 1.9, 1.8], rounds=range(0, 70, 10)))
    assert "roughness" not in found
    assert "generalisation_gap" not in found
    assert found["late_loss"] == pytest.approx(1.8)


def test_the_account_by_hand():
    # C = 10, B = 5: 2C = 20; √(0.25/0.01)/20 = 0.25 and √(0.25/0.0025)/20 = 0.5. The run has 7 rounds.
    frame = made_up(
        [1.0] * 8, step_size=[0.01, 0.0025], samples=[100, 50, 5, 1000], beta=[0.25], clip=[10.0], batch=[5.0]
    )
    found = measured(frame)
    assert found["noise_multiplier"] == pytest.approx(0.375)
    steps = [0.25, 0.5]
    assert found["epsilon_smallest_node"] == epsilon(steps, 1.0, 7, measures.DELTA)
    assert found["epsilon_median_node"] == epsilon(steps, 0.05, 7, measures.DELTA)
    assert found["epsilon_largest_node"] == epsilon(steps, 0.005, 7, measures.DELTA)
    # each record clipped: C/B = 2, ten times the multiplier
    assert found["epsilon_each_record"] == epsilon([2.5, 5.0], 0.05, 7, measures.DELTA)
    assert found["epsilon_smallest_node"] > found["epsilon_median_node"] > found["epsilon_largest_node"] > 0


def test_the_account_of_clipped_records_by_hand():
    frame = made_up([1.0] * 8, step_size=[0.01], samples=[100], beta=[0.25], clip=[10.0], batch=[5.0], clip_each=[1.0])
    found = measured(frame)
    assert found["noise_multiplier"] == pytest.approx(2.5)  # √25/(C/B)
    assert found["epsilon_median_node"] == found["epsilon_each_record"] == epsilon([2.5], 0.05, 7, measures.DELTA)
    e = found["epsilon_median_node"]
    assert found["attack_bound"] == pytest.approx((math.exp(e) - 1 + 2e-5) / (math.exp(e) + 1), rel=1e-9)


def test_contraction_by_hand():
    # halves each of the first three rounds, then a quarter less each
    distances = [8.0, 4.0, 2.0, 1.0, 0.75, 0.5625, 0.421875]
    found = measured(made_up([1.0] * 7, distance=distances))
    assert found["contraction_first"] == pytest.approx(math.log(2), rel=1e-12)
    assert found["contraction_second"] == pytest.approx(math.log(4 / 3), rel=1e-12)
    assert found["distance_left"] == pytest.approx(0.421875 / 8, rel=1e-12)


def test_what_a_run_does_not_have_is_not_measured():
    assert set(measured(made_up([1.0] * 9))) == {"late_loss", "roughness"}


def test_on_a_run():
    plan = make_plan(8, LocalWork(steps=4, batch=3, poisson=True), client_metrics="never")
    by_seed = federations("softmax", {0: RAGGED, 1: RAGGED})
    some = [FedSGLD(lr=0.05, beta=0.5, burn_in=2, account=True), FedSGLDCoupled(lr=0.05, beta=0.5, burn_in=2, twin=2.0)]
    frames = [run(make_task("softmax"), by_seed, plan, a).frame for a in some]
    frame = pd.concat(frames).assign(data="synthetic", diverged=False)[TABLE_COLUMNS]
    found = measures.measure(frame)
    counts = found.groupby("metric").size().to_dict()
    assert counts["late_loss"] == counts["roughness"] == 2 * 2
    for metric in ("noise_multiplier", "epsilon_smallest_node", "epsilon_each_record", "contraction_first"):
        assert counts[metric] == 2
    assert np.isfinite(found["value"]).all()
