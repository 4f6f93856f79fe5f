"""The bench of the declared ways of running clients: every model, timed on an experiment that uses it."""

from __future__ import annotations

import pytest

from fedrepro.bench.strategies import EXPERIMENTS, measure
from fedrepro.core.experiment import load_experiment
from fedrepro.files import ROOT
from fedrepro.models import MODELS


def test_every_model_is_timed_on_an_experiment():
    folder = ROOT / "config" / "experiments"
    specs = {name: load_experiment(folder / f"{name}.yaml", "smoke").spec for name in EXPERIMENTS}
    assert sorted(spec["model"]["name"] for spec in specs.values()) == sorted(MODELS)
    assert all(EXPERIMENTS[name] in spec["algorithms"] for name, spec in specs.items())


@pytest.mark.parametrize(
    ("name", "declared", "ways"), [("dfl/line", "vmap", ["loop", "vmap"]), ("sa/cifar10_iid", "loop", ["loop"])]
)
def test_both_ways_are_timed_where_there_are_two(name, declared, ways):
    """cifar10_iid has batch norm and padded batches."""
    row = measure(name, "smoke", rounds=1)
    assert sorted(key.removesuffix("_s") for key in row if key.endswith("_s")) == ways
    assert all(row[f"{way}_s"] > 0 for way in ways)
    assert row["declared"] == declared
