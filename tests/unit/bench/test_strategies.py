"""The bench of the declared strategies: every model, timed on an experiment that uses it."""

from __future__ import annotations

import pytest

from fedrepro.bench.strategies import cases, measure
from fedrepro.core import parts
from tests.configs import experiment

CASES = cases("smoke")


def test_every_model_is_timed_on_an_experiment():
    assert sorted(CASES) == sorted(parts.modules("models"))
    for model, (e, algorithm) in CASES.items():
        assert e.spec["model"]["name"] == model
        assert parts.algorithm(e.methods(algorithm)[0]).iterative


@pytest.mark.parametrize(
    ("case", "declared", "ways"),
    [((experiment(), "fedavg"), "vmap", ["loop", "vmap"]), (CASES["resnet9"], "loop", ["loop"])],
    ids=["linear", "resnet9"],
)
def test_both_ways_are_timed_where_there_are_two(case, declared, ways):
    """resnet9 has batch norm, and its batches are padded here: it has no vectorised form."""
    row = measure(*case, rounds=1)
    assert sorted(key.removesuffix("_s") for key in row if key.endswith("_s")) == ways
    assert all(row[f"{way}_s"] > 0 for way in ways)
    assert row["declared"] == declared
    assert row["faster"] in ways
