"""Fairness measures by hand: spread and its sampling part, groups, the tuning rule, and bounds for a given mean."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence.tables import rows
from fedrepro.studies.gifair.measures import (
    choose,
    fairness,
    largest_spread,
    largest_spread_of_any_deal,
    loss_fairness,
    measure,
    methods,
    sampling_variance,
    smallest_spread,
)
from tests.studies.gifair.tables import tidy


def found(accuracies, samples=10, groups=None):
    frame = pd.DataFrame({"value": accuracies, "samples": samples, "group": groups or [""] * len(accuracies)})
    return {(metric, group): value for metric, group, value in fairness(frame)}


def test_mean_spread_and_its_sampling_part_by_hand():
    # 0.5 and 0.7: mean 0.6, sd 0.1; a(1 − a)/9 = 0.25/9 and 0.21/9, whose mean is 0.23/9, halved: 0.01278 > 0.01
    one = found([0.5, 0.7])
    assert one["accuracy", ""] == pytest.approx(0.6)
    assert one["spread", ""] == pytest.approx(0.1)
    assert one["sampling", ""] == pytest.approx(math.sqrt(0.23 / 18))
    assert one["excess", ""] == 0
    assert one["unfairness", ""] == one["spread", ""]
    wide = found([0.2, 0.9], samples=101)
    expected = 0.35**2 - 0.5 * (0.16 + 0.09) / 2 / 100
    assert wide["excess", ""] == pytest.approx(math.sqrt(expected))


def test_equal_devices_have_no_excess_on_average():
    """Devices of one true accuracy: the sampling part is the expected variance."""
    rng = np.random.default_rng(0)
    accuracies = rng.binomial(20, 0.8, (4000, 30)) / 20
    sampled = np.mean([sampling_variance(a, np.full(30, 20)) for a in accuracies])
    assert sampled == pytest.approx(accuracies.var(axis=1).mean(), rel=0.02)


def test_groups_by_hand():
    one = found([0.5, 0.7, 0.9], groups=["male", "male", "female"])
    assert one["group_accuracy", "male"] == pytest.approx(0.6)
    assert one["group_accuracy", "female"] == pytest.approx(0.9)
    assert one["discrepancy", ""] == one["unfairness", ""] == pytest.approx(0.3)
    assert one["worst_group", ""] == pytest.approx(0.6)
    assert one["best_group", ""] == pytest.approx(0.9)


def test_the_worst_tenth_is_at_least_one_device():
    assert found([0.3, 0.8, 0.9])["worst_tenth", ""] == pytest.approx(0.3)
    assert found([0.1, 0.3, *[0.9] * 18])["worst_tenth", ""] == pytest.approx(0.2)


# --- tuning -----------------------------------------------------------------------------------------------------------


def candidates(**given):
    lines = []
    for key, (accuracy, unfairness) in given.items():
        algorithm, _, setting = key.partition("__")
        for metric, value in (("validation_accuracy", accuracy), ("validation_unfairness", unfairness)):
            line = {"algorithm": algorithm, "setting": setting, "metric": metric}
            lines += [{**line, "seed": seed, "value": value + seed} for seed in (-1, 0, 1)]
    table = choose(pd.DataFrame(lines))
    return table[table["chosen"]].set_index("algorithm")["setting"].to_dict()


def test_the_fairest_setting_that_is_as_good_as_fedavg_is_chosen():
    picked = candidates(fedavg=(80, 10), q__0=(80, 10), q__1=(79.5, 6), q__5=(70, 2))
    assert picked == {"fedavg": "", "q": "1"}


def test_where_none_is_as_good_none_is_chosen():
    assert candidates(fedavg=(80, 10), q__1=(75, 6), q__5=(70, 2)) == {"fedavg": ""}


def test_per_is_not_tuned_to_lambda_0():
    given = {
        "gifair_per__fraction=0": (90, 1),
        "gifair_per__fraction=0.5": (80, 4),
        "gifair_per__fraction=0.9": (60, 2),
    }
    assert candidates(fedavg=(80, 10), **given)["gifair_per"] == "fraction=0.5"
    given["gifair_global__fraction=0"] = (80, 1)
    assert candidates(fedavg=(80, 10), **given)["gifair_global"] == "fraction=0"


# --- the whole table --------------------------------------------------------------------------------------------------


def devices(accuracies: dict[str, dict[str, list[float]]]) -> list[dict[str, object]]:
    """Rows of a table, from setting → split → accuracies of the devices; two equal seeds."""
    lines = []
    for seed in (0, 1):
        for setting, by_split in accuracies.items():
            run = {"setting": setting, "seed": seed}
            for split, values in by_split.items():
                for client, value in enumerate(values):
                    device = run | {"client": client, "split": split}
                    lines.append(device | {"metric": "accuracy", "value": value, "round": 3})
                    lines.append(device | {"metric": "samples", "value": 10})
            lines.append(run | {"metric": "bytes_up", "value": 8.0, "round": 3})
    return lines


def test_methods_get_their_names_and_the_chosen_setting_is_told_by_validation_not_by_test():
    accuracies = {
        "fedavg": {"validation": [0.5, 0.9], "test": [0.4, 0.8]},
        "q_ffl,q=1": {"validation": [0.7, 0.7], "test": [0.2, 0.8]},
        "q_ffl,q=5": {"validation": [0.6, 0.8], "test": [0.6, 0.6]},
    }
    derived = measure(tidy(devices(accuracies)))
    assert set(derived["algorithm"]) == {"fedavg", "q_ffl"}
    chosen = rows(derived, "chosen_spread", algorithm="q_ffl")
    assert chosen["setting"].tolist() == ["q=1", "q=1"]
    assert chosen["value"].tolist() == pytest.approx([30, 30])
    fair = rows(derived, "spread", algorithm="q_ffl", setting="q=5", seed=0)
    assert fair["value"].item() == pytest.approx(0, abs=1e-12)
    assert fair["grid.q"].item() == 5
    assert rows(derived, "bytes_up", algorithm="fedavg")["value"].tolist() == [8.0, 8.0]
    assert (derived["split"] == "derived").all()


def test_a_diverged_run_is_still_seen():
    lines = devices({"fedavg": {"validation": [0.5, 0.9], "test": [0.4, 0.8]}})
    gone = {"setting": "q_ffl,q=10", "seed": 0, "metric": "diverged", "value": 1.0, "diverged": True}
    derived = measure(tidy([*lines, gone]))
    assert rows(derived, "diverged", algorithm="q_ffl", setting="q=10")["diverged"].tolist() == [True]


def test_a_setting_without_a_grid_has_an_empty_name():
    named = methods(tidy(devices({"fedavg": {"test": [0.5]}, "gifair_per,fraction=0.9": {"test": [0.5]}})))
    found = set(zip(named["algorithm"], named["setting"], strict=True))
    assert found == {("fedavg", ""), ("gifair_per", "fraction=0.9")}


def test_an_algorithm_without_variants_keeps_its_name():
    table = tidy(devices({"fedavg": {"test": [0.5]}})).assign(algorithm="ditto", variant="", point="strength=1")
    named = methods(table)
    assert set(zip(named["algorithm"], named["setting"], strict=True)) == {("ditto", "strength=1")}


# --- what a mean allows -----------------------------------------------------------------------------------------------


def test_the_smallest_spread_is_the_binomial_one():
    assert smallest_spread(0.5, 100) == pytest.approx(0.05)


def test_the_largest_spread_by_hand():
    # Two of four classes, accuracies 1, 1, 0, 0: devices have 1, ½ (four of six pairs), 0: variance (¼ + ¼)/6 = 1/12.
    assert largest_spread(0.5, 1000, classes=4, held=2) == pytest.approx(math.sqrt(1 / 12))
    # a device with all classes differs from others by its finite test set only
    assert largest_spread(0.5, 25, classes=4, held=4) == pytest.approx(smallest_spread(0.5, 25))


@pytest.mark.parametrize("seed", range(20))
def test_no_model_exceeds_the_largest_spread(seed):
    """Random class accuracies on every possible device of 5 of 10 classes."""
    q = np.random.default_rng(seed).beta(0.3, 0.3, 10)
    devices = np.array([q[list(mine)].mean() for mine in combinations(range(10), 5)])
    assert devices.std() <= largest_spread(float(q.mean()), 1000, classes=10, held=5) + 1e-12


def test_the_largest_spread_of_any_deal_is_that_of_complementary_halves():
    # Five classes known fully, five to 60 %: a = 0.8. Half of the devices have 1, the others 0.6: spread 0.2 = 1 − a.
    assert largest_spread_of_any_deal(0.8, math.inf, classes=10, held=5) == pytest.approx(0.2)
    assert largest_spread_of_any_deal(0.3, math.inf, classes=10, held=5) == pytest.approx(math.sqrt(0.7 * 0.3))


@pytest.mark.parametrize("seed", range(20))
def test_no_model_exceeds_the_largest_spread_of_any_deal(seed):
    """Random class accuracies; devices by consecutive windows, in a random order of the classes."""
    rng = np.random.default_rng(seed)
    q = rng.beta(0.5, 0.3, 10)
    q[::-1].sort()
    devices = np.array([q[(np.arange(5) + first) % 10].mean() for first in range(10)])
    halves = np.array([q[:5].mean(), q[5:].mean()])
    for deal in (devices, halves):
        assert deal.mean() == pytest.approx(q.mean())
        assert deal.std() <= largest_spread_of_any_deal(float(q.mean()), math.inf, classes=10, held=5) + 1e-12


def test_the_spread_of_the_training_loss_by_hand():
    # Losses 1, 2, 3, 6 in groups a, a, b, c: spread √3.5; means 1.5, 3, 6: |1.5 − 3| + |1.5 − 6| + |3 − 6| = 9.
    own = pd.DataFrame({"value": [1.0, 2, 3, 6], "group": ["a", "a", "b", "c"]})
    assert dict(loss_fairness(own)) == pytest.approx({"loss_spread": math.sqrt(3.5), "loss_discrepancy": 9})
    assert dict(loss_fairness(own.assign(group=""))) == pytest.approx({"loss_spread": math.sqrt(3.5)})


def test_the_spread_of_the_training_loss_is_measured_on_training_data_of_the_last_round():
    lines = devices({"fedavg": {"validation": [0.5, 0.9], "test": [0.4, 0.8], "train": [0.5, 0.5]}})
    for split, values in (("train", (1.0, 3.0)), ("test", (7.0, 9.5))):
        for client, value in enumerate(values):
            run = {"setting": "fedavg", "seed": 0, "client": client, "split": split, "metric": "loss"}
            lines += [run | {"value": value, "round": 3}, run | {"value": 100.0 * client, "round": 2}]
    derived = measure(tidy(lines))
    assert rows(derived, "loss_spread")["value"].tolist() == [1.0]
    assert rows(derived, "chosen_loss_spread")["value"].tolist() == [1.0]


@pytest.mark.parametrize(("power", "expected"), [(-1, -1), (-2, -2), (0, 0)])
def test_the_rate_of_a_power_of_the_iterations_is_its_exponent(power, expected):
    run = {"setting": "gifair_theory,fraction=0.5", "seed": 0}
    lines = [run | {"metric": m, "value": 7.0 * t**power, "round": t} for t in range(1, 4001) for m in ("gap", "bound")]
    derived = measure(tidy(lines))
    assert rows(derived, "gap_rate")["value"].item() == pytest.approx(expected, abs=0.01)
    assert set(derived["metric"]) == {"gap_rate", "bound_rate"}


def test_the_rate_counts_from_the_offset_of_the_steps():
    run = {"setting": "gifair_theory,fraction=0.5", "seed": 0}
    lines = [run | {"metric": "gap", "value": 3 / (500 + t), "round": t} for t in range(1, 4001)]
    derived = measure(tidy([*lines, run | {"metric": "offset", "value": 500.0}]))
    assert rows(derived, "gap_rate")["value"].item() == pytest.approx(-1, abs=0.01)


def test_the_rate_of_a_gradient_is_that_of_its_least_value_so_far():
    run = {"setting": "theorem_12", "seed": 0, "metric": "gradient"}
    lines = [run | {"value": 1 / t if t % 2 else 100.0, "round": t} for t in range(1, 4001)]
    assert rows(measure(tidy(lines)), "gradient_rate")["value"].item() == pytest.approx(-1, abs=0.01)
