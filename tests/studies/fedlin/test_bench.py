"""The bench of the linear models runs the printed variants of the thesis only."""

from __future__ import annotations

from fedrepro.core.experiment import load_experiments
from fedrepro.files import ROOT
from fedrepro.studies.fedlin.bench import CASES, measure, printed


def test_only_the_printed_variants_are_timed():
    experiments = load_experiments(ROOT / "config", "paper", "fedlin")
    for algorithm, variants, names in CASES.values():
        for name in names:
            chosen = printed(experiments[f"fedlin/{name}"], algorithm, variants)
            assert tuple(chosen.settings(algorithm)) == (variants or ("",))
            assert chosen.spec["seeds"] == 30
            assert len(chosen.spec["model"].get("arms", [1] * 8)) == 8


def test_every_case_is_trained_and_all_of_them_together():
    table = measure("smoke", {"HM1": ("hm1", (), ("hm1_i",))})
    assert table["experiment"].tolist() == ["hm1_i", "all, two at a time"]
    assert (table["runs"] == 2).all()
    assert table["gradient_steps"].nunique() == 1
    assert table.loc[1, "seconds"] > table.loc[0, "seconds"] > 0
    assert (table["peak_mb"] > 0).all()
