"""Wrong input through snakemake: one line, no traceback, no job. More cases: tests/unit/core/test_wrong_input.py."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.workflow


def refused(checkout, *config: str, target: str = "all", **environment: str) -> str:
    """The one line with which a run ends before its first job."""
    done = checkout.snakemake(target, config=config, **environment)
    assert done.returncode != 0
    assert not checkout.results.exists()
    (announced, *told) = done.stderr.strip().splitlines()
    assert announced.startswith("Using profile ")
    assert len(told) == 1, done.stderr
    return told[0]


def test_an_unknown_study(fresh):
    told = "error: only: 'toi' is neither a study nor an artefact; did you mean 'toy'? (or toy/fig3b)"
    assert refused(fresh, "only=toi") == told


def test_an_unknown_key_on_the_command_line(fresh):
    told = "error: config/config.yaml (or --config): unknown key 'scael'; did you mean 'scale'?"
    assert refused(fresh, "scael=smoke") == told


def test_an_unknown_hyper_parameter(fresh):
    def change(experiment):
        experiment["algorithms"]["fedprox"]["nu"] = 0.5

    fresh.rewrite("config/studies/toy/experiments/faults.yaml", change)
    told = "error: config/studies/toy/experiments/faults.yaml: unknown key 'algorithms.fedprox.nu'; did you mean 'mu'?"
    assert refused(fresh) == told


def test_an_unknown_target(fresh):
    told = "error: there is no study, artefact or rule 'toi'; did you mean 'toy'?"
    assert refused(fresh, target="toi").startswith(told)


def test_a_device_that_is_not_here(fresh, tmp_path):
    listing = tmp_path / "nvidia-smi"  # on a machine with a GPU, too
    listing.write_text("#!/bin/sh\nexit 1\n")
    listing.chmod(0o755)
    told = refused(fresh, "device=cuda", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert told.startswith("error: device: 'cuda' was asked for, but nvidia-smi lists no GPU here")
