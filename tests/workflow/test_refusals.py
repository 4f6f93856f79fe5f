"""Wrong input through snakemake: one line, no traceback, no job. More cases: tests/unit/core/test_wrong_input.py."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.workflow


def refused(checkout, *config: str) -> str:
    """The one line with which a run ends before its first job."""
    done = checkout.snakemake("all", config=config)
    assert done.returncode != 0
    assert not checkout.results.exists()
    (announced, *told) = done.stderr.strip().splitlines()
    assert announced.startswith("Using profile ")
    assert len(told) == 1, done.stderr
    return told[0]


def test_an_unknown_study(fresh):
    assert refused(fresh, "only=toi") == "error: only: 'toi' is neither a study nor an artefact; did you mean 'toy'?"


def test_an_unknown_key_on_the_command_line(fresh):
    told = "error: config/config.yaml (or --config): unknown key 'scael'; did you mean 'scale'?"
    assert refused(fresh, "scael=smoke") == told


def test_an_unknown_hyper_parameter(fresh):
    def change(experiment):
        experiment["algorithms"]["fedprox"]["nu"] = 0.5

    fresh.rewrite("config/studies/toy/experiments/faults.yaml", change)
    told = "error: config/studies/toy/experiments/faults.yaml: unknown key 'algorithms.fedprox.nu'; did you mean 'mu'?"
    assert refused(fresh) == told
