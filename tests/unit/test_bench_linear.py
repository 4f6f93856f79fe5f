"""The bench of the linear models runs what the thesis prints, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

from fedrepro.bench_linear import CASES, printed, run
from fedrepro.experiment import load_experiments

CONFIG = Path(__file__).parents[2] / "config"


def test_only_the_printed_variants_are_timed():
    experiments = load_experiments(CONFIG, "paper")
    for algorithm, variants, names in CASES.values():
        for name in names:
            chosen = printed(experiments[f"fedlin/{name}"], algorithm, variants)
            assert tuple(chosen.settings(algorithm)) == variants
            assert chosen.spec["seeds"] == 30
            assert len(chosen.spec["dataset"].get("readings", [1])) == 1


def test_a_case_is_trained_from_nothing():
    row = run(CONFIG, "smoke", "hm1_i", "hm1", ("box", "separate"))
    assert row["runs"] == 2
    assert row["gradient_steps"] > 0
    assert row["seconds"] > 0
    assert row["peak_mb"] > 0
