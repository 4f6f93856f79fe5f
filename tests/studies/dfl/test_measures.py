"""The bounds of Lemmas 1, 3, 4 and Theorem 1 against numbers worked by hand, and on runs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.dfl import measures
from fedrepro.studies.dfl.algorithms.dfl import DFL
from tests.builders import federations, make_plan, make_task, run

#: M = 4, T_C = 10, θ = 3, γ = 0.02, σ_A = 1/5
BOX = {"servers": 4, "client_steps": 10, "theta": 3.0, "gamma": 0.02, "sigma": 0.2}


def test_lemma_1_by_hand():
    # √4·10·3·0.02·0.2/0.8 = 0.3
    assert measures.lemma1_bound(**BOX) == pytest.approx(0.3, rel=1e-14)
    assert measures.lemma1_bound(**{**BOX, "sigma": 0.0}) == 0


def test_lemma_3_by_hand():
    assert measures.lemma3_bound(client_steps=10, theta=3.0, gamma=0.02) == pytest.approx(0.6, rel=1e-14)


def test_the_residual_by_hand():
    # (0.02·10)²·3·2.5·(1 + 2·0.2/0.8) = 0.04·7.5·1.5 = 0.45
    assert measures.residual(**BOX, smoothness=2.5) == pytest.approx(0.45, rel=1e-14)


def test_the_contraction_by_hand():
    # √(1 − 0.02·1.8·10) = √0.64
    assert measures.contraction_factor(client_steps=10, gamma=0.02, mu=1.8) == pytest.approx(0.8, rel=1e-14)


def test_lemma_4_by_hand():
    # 0.8ᵖ·5 + 0.45/0.2 for p = 0, 1, 2
    found = measures.lemma4_bound(np.arange(3), start=5.0, y0=0.45, factor=0.8)
    np.testing.assert_allclose(found, [7.25, 6.25, 5.45], rtol=1e-14)


@pytest.mark.parametrize("mu", [1e-2, 1e-3, 1e-4])
def test_at_the_largest_step_the_bound_is_twice_the_trivial_one(mu):
    """With γT_C·L → 1 and σ_A → 0: Y₀ = (γT_C)²θL = γT_C·θ, and 1 − Λ ≈ γμT_C/2, so Y₀/(1 − Λ) ≈ 2·θ/μ.

    Exactly, with x = μ/L, the ratio is x/(1 − √(1 − x)) = 1 + √(1 − x).
    """
    smoothness, steps, theta = 1.0, 250, 7.0
    gamma = (1 - 1e-9) / (smoothness * steps)
    y0 = measures.residual(5, steps, theta, gamma, 1e-12, smoothness)
    epsilon = measures.lemma1_bound(5, steps, theta, gamma, 1e-12) + y0 / (
        1 - measures.contraction_factor(steps, gamma, mu)
    )
    ratio = epsilon / (theta / mu)
    assert ratio == pytest.approx(1 + math.sqrt(1 - mu / smoothness), rel=1e-6)
    assert ratio == pytest.approx(2, rel=mu)


def test_the_bound_is_informative_below_a_half_only():
    """ε/(θ/μ) ≈ 2·γT_C·L for μ ≪ L and σ_A → 0: it passes 1 where γT_C·L = ½."""
    ratios = {}
    for fraction in (0.1, 0.5, 0.9):
        y0 = measures.residual(5, 1, 1.0, fraction, 0.0, 1.0)
        ratios[fraction] = y0 / (1 - measures.contraction_factor(1, fraction, 1e-6)) * 1e-6
    assert ratios == pytest.approx({0.1: 0.2, 0.5: 1.0, 0.9: 1.8}, rel=1e-5)


# --- from a run's metrics ---------------------------------------------------------------------------------------------


def table(*algorithms, rounds=30, steps=5) -> pd.DataFrame:
    """The tidy table of runs that start at 0 and whose true parameters are known."""
    by_seed = {
        seed: Federation(f.train, facts={"w": np.array([1.0, -2.0, 0.5, 1.0])})
        for seed, f in federations("linear", {0: [8] * 8, 1: [9] * 8}).items()
    }
    plan = make_plan(rounds, LocalWork(steps=steps), "uniform", client_metrics="never")
    frame = run(make_task("linear"), by_seed, plan, *algorithms).frame
    return frame.assign(data="synthetic", diverged=False)[TABLE_COLUMNS]


def test_the_bounds_hold_on_runs():
    some = [
        DFL(servers=4, server_steps=steps, graph=graph, step_fraction=fraction)
        for steps, graph, fraction in ((1, "path", 0.9), (5, "ring", 0.5), (25, "complete", 0.1), (2, "star", 0.9))
    ]
    derived = measures.measure(table(*some))
    assert list(derived) == TABLE_COLUMNS
    assert (derived["split"] == "derived").all()
    for ratio in (*(f"lemma{n}_ratio" for n in (1, 2, 3, 4)), "theorem1_ratio", "every_epoch_ratio"):
        found = derived[derived["metric"] == ratio]
        assert len(found) == 4 * 2  # settings × seeds
        assert (found["value"] <= 1).all()
        assert (found["value"] >= 0).all()
    assert (derived[derived["metric"] == "theorem1_ratio"]["value"] > 0).all()


def made_up(gap, gap_before, distance_mean) -> pd.DataFrame:
    """The metrics of one run by epoch in the form of DFL's log, with ‖w*‖ = 10 and simple bounds."""
    once = {"mu": 1.8, "L": 2.5, "gamma": 0.02, "sigma_A": 0.2, "servers": 4, "client_steps": 10, "messages": 1100}
    once |= {"limit_distance": 1.5, "limit_mean": 1.0, "limit_gap": 0.1, "limit_theta": 2.0, "contraction_ratio": 0.9}
    rows = [{"round": 0, "metric": m, "value": v, "split": ""} for m, v in once.items()]
    for t, (g, d) in enumerate(zip(gap, distance_mean, strict=True)):
        values = {"gap": g, "distance_mean": d, "distance": d + g, "theta": 3.0 - t / 10, "distance_true": 10.0}
        if t > 0:
            values |= {"gap_before": gap_before[t], "drift": 0.3 / t}
        rows += [{"round": t, "metric": m, "value": v, "split": "server"} for m, v in values.items()]
    frame = pd.DataFrame(rows).assign(experiment="dfl/line", algorithm="dfl", setting="", seed=0, step=0, client=-1)
    # rows for figures, which no measure may take for the numbers of the run
    noise = {"round": 1, "metric": "gap", "value": 99.0, "split": "server", "group": "server 0", "step": 0}
    frame = pd.concat([frame.assign(group=""), pd.DataFrame([{**frame.iloc[0], **noise}])], ignore_index=True)
    return frame.assign(data="synthetic", diverged=False)[TABLE_COLUMNS]


def test_measures_by_hand():
    frame = made_up(
        gap=[0.0, 0.5, 0.009, 0.02, 0.01, 0.0],
        gap_before=[None, 4.0, 2.0, 1.0, 0.5, 0.0],
        distance_mean=[5.0, 3.0, 1.006, 1.004, 1.0, 1.0],
    )
    found = measures.measure(frame).set_index("metric")
    # agreed: within 10⁻³·10 = 0.01 from epoch 4 on (epoch 2 did not last)
    assert found["value"]["rounds_to_agree"] == 4
    # settled: within 10⁻³·5 of the limit from epoch 3 on
    assert found["value"]["rounds_to_settle"] == 3
    assert found["value"]["relative_gap"] == pytest.approx(0.5 / 4)  # 0.125, then 0.0045, 0.02, 0.02, 0/0
    assert found["value"]["spread_at_start"] == pytest.approx(0.4)
    assert found["value"]["spread_at_end"] == 0
    # θ is the largest of all epochs, 3: Lemma 1 gives 0.3, Y₀/(1 − Λ) = 0.45/0.2 = 2.25, ε = 2.55
    assert found["value"]["lemma1_bound"] == pytest.approx(0.3, rel=1e-12)
    assert found["value"]["lemma1_ratio"] == pytest.approx(0.5 / 0.3, rel=1e-12)
    assert found["value"]["epsilon"] == pytest.approx(2.55, rel=1e-12)
    assert found["value"]["epsilon_over_trivial"] == pytest.approx(2.55 * 1.8 / 3, rel=1e-12)
    # measured/bound, largest at the start: 5/(5 + 2.25); with the servers' own distance 5/(0.3 + 7.25)
    assert found["value"]["lemma4_ratio"] == pytest.approx(5 / 7.25, rel=1e-12)
    assert found["value"]["every_epoch_ratio"] == pytest.approx(5 / 7.55, rel=1e-12)
    assert found["value"]["theorem1_ratio"] == pytest.approx(1.5 / 2.55, rel=1e-12)  # of the limit
    assert found["value"]["lemma3_ratio"] == pytest.approx(0.3 / 0.6, rel=1e-12)
    assert found["value"]["lemma2_ratio"] == 0.9
    assert found["value"]["lemma4_bound"] == pytest.approx(2.25, rel=1e-12)
    # 4400 messages are four epochs of 1100
    assert found["value"]["distance_at_budget"] == pytest.approx(1.01)
    assert found["round"]["distance_at_budget"] == 4
    assert found["value"]["final_distance"] == 1
    assert found["round"]["spread_at_start"] == 1
    assert found["round"]["epsilon"] == 5


def test_never_is_infinite():
    frame = made_up(gap=[0.0, 0.5, 0.5], gap_before=[None, 1.0, 1.0], distance_mean=[5.0, 3.0, 1.0])
    found = measures.measure(frame).set_index("metric")["value"]
    assert found["rounds_to_agree"] == math.inf
    assert found["rounds_to_settle"] == 2
    assert "distance_at_budget" not in found  # the run is too short


def test_a_method_without_servers_has_no_such_measures():
    other = table(FedAvg(lr=0.01), rounds=2)
    assert len(measures.measure(other)) == 0
    ours = table(DFL(servers=2), rounds=2).assign(algorithm="dfl")
    assert set(measures.measure(pd.concat([ours, other]))["algorithm"]) == {"dfl"}


def test_a_diverged_run_without_servers_has_no_such_measures():
    beside = table(FedAvg(lr=0.01), rounds=2)
    gone = beside.iloc[:1].assign(metric="diverged", value=1.0, split="")
    assert len(measures.measure(pd.concat([beside, gone]).assign(diverged=True))) == 0
