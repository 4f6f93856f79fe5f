"""The tables and figures of federated SGLD, from tables made by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS, Tables
from fedrepro.studies.sgld import artefacts

ROUNDS, SEEDS = 9, 2


def table(
    metrics: Sequence[str], arms: Iterable[tuple[str, str]], rounds: Iterable[int], value: Callable[[int, int], float]
) -> pd.DataFrame:
    """Rows of all (algorithm, setting) in `arms`, all seeds and rounds; value(seed, round)."""
    about = {"experiment": "sgld/x", "group": "", "data": "synthetic", "diverged": False, "step": 0, "client": -1}
    runs = itertools.product(arms, metrics, range(SEEDS), rounds)
    rows = [
        {
            **about,
            "split": "train",
            "algorithm": a,
            "setting": s,
            "seed": k,
            "metric": m,
            "round": r,
            "value": value(k, r),
        }
        for (a, s), m, k, r in runs
    ]
    return pd.DataFrame(rows)[TABLE_COLUMNS]


def losses(arms: dict[tuple[str, str], float]) -> pd.DataFrame:
    """(algorithm, setting) → the loss at all rounds, higher by 10 for the second seed."""
    each = [table(["loss"], [arm], range(ROUNDS), lambda k, _, v=value: v + 10 * k) for arm, value in arms.items()]
    return pd.concat(each, ignore_index=True)


def test_fig6_pairs_the_seeds_of_ours_and_the_baseline():
    settings = {("fedpd", "server start"): 3.0, ("fedpd", "own start"): 4.0}
    settings |= {("fed_sgld", "decreasing"): 2.0, ("fed_sgld", "fixed"): 2.5}
    softmax = losses({(a, f"{s},lr={lr}"): v for (a, s), v in settings.items() for lr in (0.05, 0.01)})
    network = losses({("fedpd", ""): 3.0, ("fed_sgld", "low decreasing"): 2.0, ("fed_sgld", "low fixed"): 2.5})
    figure, drawn = artefacts.fig6_low(Tables({"low": softmax, "mlp": network}))
    assert len(figure.axes) == 6
    gap = drawn[drawn["shown"] == "difference"]
    assert gap["panel"].nunique() == 3
    assert set(gap["arm"]) == {"SGLD, Algorithm 2 − FedPD", "SGLD, fixed steps − FedPD"}
    for _, row in gap.iterrows():  # paired by seed: a common offset adds no spread
        expected = -1.0 if "Algorithm 2" in row["arm"] else -0.5
        assert [row["median"], row["low"], row["high"]] == pytest.approx([expected] * 3)


def test_contraction_is_a_share_of_the_distance_at_the_start():
    arms = [("fed_sgld_coupled", "plain loss"), ("fed_sgld_coupled", "with ridge")]
    found = table(["distance"], arms, range(4), lambda k, r: (k + 1) / 2**r)
    _, drawn = artefacts.contraction(Tables({"contraction": found, "contraction_mlp": found}))
    assert set(drawn["model"]) == {"softmax", "network"}
    assert drawn["value"].tolist() == pytest.approx((0.5 ** drawn["round"]).tolist())


def test_the_fixed_point_table_has_the_last_round_of_every_arm():
    metrics = ("residual", "relative_residual", "dual_sum", "clipped")
    found = table(metrics, [("fedpd", "own start,lr=0.05")], range(3), lambda k, r: 1.0 - r / 10 + k)
    shown = artefacts.fixed_point(Tables({"low": found}))
    assert len(shown) == 1
    assert shown.loc[0, "‖λ + ∇F‖"] == "1.300 ± 0.707"  # 0.8 and 1.8


def test_smoothness_shows_every_seed_of_every_arm_and_step():
    arms = [(a, f"{s},lr={lr}") for a, s in (("fedpd", "server start"), ("fed_sgld", "fixed")) for lr in (0.05, 0.01)]
    found = table(["roughness"], arms, [ROUNDS], lambda k, _: 0.1 * (k + 1))
    _, drawn = artefacts.smoothness(Tables({"low": found, "high": found}))
    assert len(drawn) == 2 * len(found)
    assert set(drawn["arm"]) == {"FedPD, server start", "SGLD, fixed"}
    assert set(drawn["lr"]) == {0.05, 0.01}
