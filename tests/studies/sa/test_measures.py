"""The measures of stochastic approximation against numbers worked by hand, and on short runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.core.federation import LocalWork
from fedrepro.evidence.tables import TABLE_COLUMNS, rows
from fedrepro.studies.sa import measures
from fedrepro.studies.sa.algorithms.sa_tracked import SATracked
from tests.builders import federations, make_plan, make_task, run


def curves(**settings: tuple) -> pd.DataFrame:
    """setting → (accuracies, losses) on the test set by round, of seed 0."""
    found = []
    for setting, both in settings.items():
        for metric, values in zip(("accuracy", "loss"), both, strict=True):
            for round, value in enumerate(values):
                row = {"algorithm": "compared", "setting": setting, "seed": 0, "round": round, "metric": metric}
                found.append(row | {"value": float(value), "split": "test"})
    frame = pd.DataFrame(found)
    return frame.assign(experiment="sa/x", client=-1, group="", step=0, data="real", diverged=False)[TABLE_COLUMNS]


def measured(frame: pd.DataFrame, setting: str) -> dict[str, float]:
    found = measures.measure(frame)
    assert list(found) == TABLE_COLUMNS
    assert (found["split"] == "derived").all()
    return found[found["setting"] == setting].set_index("metric")["value"].to_dict()


RAMP = np.linspace(0.1, 0.6, 11)
FALL = np.linspace(2.0, 1.0, 11)
ZIGZAG = np.array([0.0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])


def test_the_end_of_a_curve_by_hand():
    # rounds 0 … 10: the last fifth are rounds 9 and 10, accuracies 0.55 and 0.6, losses 1.1 and 1
    found = measured(curves(fedavg=(RAMP, FALL)), "fedavg")
    assert found["late_accuracy"] == pytest.approx(0.575)
    assert found["late_loss"] == pytest.approx(1.05)
    assert found["spread_accuracy"] == pytest.approx(0.025)
    assert found["spread_loss"] == pytest.approx(0.05)
    assert found["best_round"] == 10


def test_of_equal_bests_the_first_counts():
    assert measured(curves(fedavg=([0.1, 0.5, 0.3, 0.5], [1, 1, 1, 1])), "fedavg")["best_round"] == 1


def test_a_steady_fall_is_no_oscillation_and_a_peak_is():
    # rounds 4 … 10 count. A peak of 0.2 at round 6 is 0, 0, 0.2, 0, 0, 0, 0 there: third differences
    # 0.2·(−3, 3, −1, 0); the fall adds none
    found = measured(curves(fedavg=(RAMP, FALL + 0.2 * ZIGZAG)), "fedavg")
    assert found["oscillation_accuracy"] == pytest.approx(0, abs=1e-12)
    assert found["oscillation_loss"] == pytest.approx(0.2 * math.sqrt((9 + 9 + 1) / 4 / 20), rel=1e-9)


def test_a_short_curve_has_no_oscillation():
    assert "oscillation_loss" not in measured(curves(fedavg=(RAMP[:4], FALL[:4])), "fedavg")


def test_leads_are_over_each_baseline():
    frame = curves(
        fedavg=(RAMP, FALL + 0.1 * ZIGZAG),
        fedprox=(RAMP + 0.02, FALL + 0.5 + 0.3 * ZIGZAG),
        sa=(RAMP + 0.01, FALL - 0.2),
        sa_round=(RAMP + 0.1, FALL + 0.2 + 0.2 * ZIGZAG),
    )
    sa, by_round = measured(frame, "sa"), measured(frame, "sa_round")
    one = math.sqrt(19 / 80)
    by_hand = {
        "accuracy_lead_over_fedavg": (0.01, 0.1),
        "accuracy_lead_over_fedprox": (-0.01, 0.08),
        "loss_lead_over_fedavg": (0.2, -0.2),
        "loss_lead_over_fedprox": (0.7, 0.3),
        "steadier_loss_than_fedavg": (0.1 * one, -0.1 * one),
        "steadier_loss_than_fedprox": (0.3 * one, 0.1 * one),
        "steadier_accuracy_than_fedavg": (0, 0),
    }
    for metric, values in by_hand.items():
        assert (sa[metric], by_round[metric]) == pytest.approx(values, rel=1e-9, abs=1e-12), metric
    assert not any("lead" in metric for metric in measured(frame, "fedavg"))


def test_a_lead_is_over_the_run_of_the_same_seed():
    first = curves(fedavg=(RAMP, FALL), sa=(RAMP + 0.1, FALL))
    second = curves(fedavg=(RAMP + 0.3, FALL), sa=(RAMP + 0.5, FALL)).assign(seed=1)
    found = measures.measure(pd.concat([first, second], ignore_index=True))
    assert rows(found, "accuracy_lead_over_fedavg").set_index("seed")["value"].to_dict() == pytest.approx(
        {0: 0.1, 1: 0.2}
    )


def tuned(losses: dict[str, tuple[float, ...]], algorithm: str, diverged: str = "") -> pd.DataFrame:
    """setting → validation loss of seeds 0, 1, …; the test loss is its number in the table."""
    found = []
    for number, (setting, by_seed) in enumerate(losses.items()):
        for seed, loss in enumerate(by_seed):
            mine = curves(**{setting: (RAMP, np.full(11, float(number)))}).assign(seed=seed)
            held_out = mine[mine["metric"] == "loss"].assign(split="validation", value=loss)
            found.append(pd.concat([mine, held_out]).assign(diverged=setting == diverged))
    return pd.concat(found, ignore_index=True).assign(algorithm=algorithm)


def test_the_setting_with_the_lowest_validation_loss_is_chosen_over_all_seeds():
    # means 1.5, 1.4, 0.1; the last diverged. Seed 0 alone would choose lr=0.1
    losses = {"lr=0.1": (1.0, 2.0), "lr=0.3": (1.4, 1.4), "lr=1": (0.1, 0.1)}
    frame = pd.concat([tuned(losses, "cosine", "lr=1"), tuned({"lr=0.1": (3.0,), "lr=0.3": (4.0,)}, "constant")])
    found = measures.measure(frame.reset_index(drop=True))
    chosen = rows(found, "chosen_late_loss")
    assert set(zip(chosen["algorithm"], chosen["setting"], chosen["seed"], chosen["value"], strict=True)) == {
        ("cosine", "lr=0.3", 0, 1.0),
        ("cosine", "lr=0.3", 1, 1.0),
        ("constant", "lr=0.1", 0, 0.0),
    }
    assert set(found.loc[found["metric"].str.startswith("chosen"), "metric"]) == {
        f"chosen_{metric}" for metric in measures.OF_THE_CHOSEN
    }


def test_without_validation_data_nothing_is_chosen():
    assert not any(m.startswith(("chosen", "validation")) for m in measured(curves(sa=(RAMP, FALL)), "sa"))


# --- the ODE ----------------------------------------------------------------------------------------------------------


def test_windows_end_within_the_run_and_have_a_round_in_them():
    assert measures.window_starts(np.array([0, 0.5, 1.0, 1.5, 2.0])) == [1, 2]
    # from T = 0.2 the next round is more than a window away
    assert measures.window_starts(np.array([0, 0.2, 1.5, 2.0, 2.5])) == [2]
    assert measures.window_starts(np.array([0, 0.3, 0.6])) == []
    many = measures.window_starts(np.arange(0, 100, 0.01))
    assert len(many) == measures.WINDOWS
    assert [many[0], many[-1]] == [1, 9_899]


def test_a_point_on_the_solution_has_no_distance_and_one_off_it_has():
    # ẇ = 2 − w from w = 0: w = 2(1 − e^{−t})
    time = np.arange(0, 3, 0.25)
    w = 2 * (1 - np.exp(-time))[:, None]
    path = measures.Trajectory(time, w, h=np.array([[1.0]]), b=np.array([2.0]))
    assert measures.window_distance(path, 2) == pytest.approx(0, abs=1e-7)
    w[5] += 0.1  # T = 1.25, in the window (0.5, 1.5]
    assert measures.window_distance(path, 2) == pytest.approx(0.1, abs=1e-7)
    assert measures.window_distance(path, 6) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("steps", [2, 5])
def test_the_distance_to_the_ode_falls_on_a_run(steps):
    work = LocalWork(steps=steps, batch=3)
    task, by_seed = make_task("linear"), federations("linear", {0: [30, 30, 30]})
    frame = run(task, by_seed, make_plan(600 // steps, work, "uniform"), SATracked(lr=0.3, power=0.9)).frame
    found = measures.measure(frame.assign(data="synthetic", diverged=False))
    distance = rows(found, "window_distance").sort_values("round")["value"].to_numpy()
    assert len(distance) > 5
    assert distance[-3:].mean() < 0.5 * distance[:3].mean()
    far = rows(found, "equilibrium_distance").sort_values("round")["value"].to_numpy()
    assert far[-1] < 0.5 * far[0]
    (left,) = rows(found, "equilibrium_remaining")["value"]
    path = measures.trajectory(frame)
    assert left == pytest.approx(far[-1] / np.linalg.norm(path.iterates[0] - np.linalg.solve(path.h, path.b)))
    (exponent,) = rows(found, "distance_exponent")["value"]
    assert exponent < 0
