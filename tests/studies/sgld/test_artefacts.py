"""What the tables and figures of federated SGLD show, from tables made up by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.sgld import artefacts as artefacts

ROUNDS, SEEDS = 9, 2


def table(rows: list[dict]) -> pd.DataFrame:
    about = {"experiment": "sgld/x", "group": "", "data": "synthetic", "diverged": False, "step": 0, "client": -1}
    return pd.DataFrame([{**about, "split": "train", "round": 0, **row} for row in rows])[TABLE_COLUMNS]


def losses(arms: dict[tuple[str, str], float]) -> pd.DataFrame:
    """(algorithm, setting) → the loss at all rounds, higher by 10 for the second seed."""
    return table(
        [
            {"algorithm": a, "setting": s, "seed": seed, "metric": "loss", "round": r, "value": value + 10 * seed}
            for (a, s), value in arms.items()
            for seed in range(SEEDS)
            for r in range(ROUNDS)
        ]
    )


def test_fig6_pairs_the_seeds_of_ours_and_the_baseline():
    settings = {("fedpd", "server start"): 3.0, ("fedpd", "own start"): 4.0}
    settings |= {("fed_sgld", "decreasing"): 2.0, ("fed_sgld", "fixed"): 2.5}
    softmax = losses({(a, f"{s},lr={lr}"): v for (a, s), v in settings.items() for lr in (0.05, 0.01)})
    network = losses({("fedpd", ""): 3.0, ("fed_sgld", "low decreasing"): 2.0, ("fed_sgld", "low fixed"): 2.5})
    figure, drawn = artefacts.fig6_low({"low": softmax, "mlp": network})
    assert len(figure.axes) == 6
    gap = drawn[drawn["shown"] == "difference"]
    assert gap["panel"].nunique() == 3
    assert set(gap["arm"]) == {"SGLD, Algorithm 2 − FedPD", "SGLD, fixed steps − FedPD"}
    for _, row in gap.iterrows():  # seed by seed: what the seeds have in common is no spread
        expected = -1.0 if "Algorithm 2" in row["arm"] else -0.5
        assert [row["median"], row["low"], row["high"]] == pytest.approx([expected] * 3)


def test_contraction_is_a_share_of_the_distance_at_the_start():
    found = [
        {
            "algorithm": "fed_sgld_pair",
            "setting": s,
            "seed": k,
            "metric": "distance",
            "round": r,
            "value": (k + 1) / 2**r,
        }
        for s in ("plain loss", "with ridge")
        for k in range(SEEDS)
        for r in range(4)
    ]
    _, drawn = artefacts.contraction({"contraction": table(found), "contraction_mlp": table(found)})
    assert set(drawn["model"]) == {"softmax", "network"}
    assert drawn["value"].tolist() == pytest.approx((0.5 ** drawn["round"]).tolist())


def test_the_fixed_point_table_has_the_last_round_of_every_arm():
    metrics = ("residual", "relative_residual", "dual_sum", "clipped")
    found = [
        {
            "algorithm": "fedpd",
            "setting": "own start,lr=0.05",
            "seed": k,
            "metric": m,
            "round": r,
            "value": 1.0 - r / 10 + k,
        }
        for m in metrics
        for k in range(SEEDS)
        for r in range(3)
    ]
    shown = artefacts.fixed_point({"low": table(found)})
    assert len(shown) == 1
    assert shown.loc[0, "‖λ + ∇F‖"] == "1.300 ± 0.707"  # 0.8 and 1.8


def test_smoothness_shows_every_seed_of_every_arm_and_step():
    found = [
        {
            "algorithm": a,
            "setting": f"{s},lr={lr}",
            "seed": k,
            "metric": "roughness",
            "round": ROUNDS,
            "value": 0.1 * (k + 1),
        }
        for a, s in (("fedpd", "server start"), ("fed_sgld", "fixed"))
        for lr in (0.05, 0.01)
        for k in range(SEEDS)
    ]
    _, drawn = artefacts.smoothness({"low": table(found), "high": table(found)})
    assert len(drawn) == 2 * len(found)
    assert set(drawn["arm"]) == {"FedPD, server start", "SGLD, fixed"}
    assert set(drawn["lr"]) == {0.05, 0.01}
