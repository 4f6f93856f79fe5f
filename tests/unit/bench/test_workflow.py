"""Shares of a workflow's run time."""

from __future__ import annotations

import os

import pytest

from fedrepro.bench import workflow
from fedrepro.errors import UserError
from fedrepro.files import write_json


def test_shares_are_of_the_time_of_all_cores(tmp_path):
    """Two cores for 10 s: training in 0–8 s with 7 s of rounds, a figure in 8–10 s, the other core idle."""
    for name, took, ended in (("train_algorithm/toy/line/toy/0-1", 8, 1008), ("render_artefact/toy/fig1", 2, 1010)):
        path = tmp_path / "benchmarks" / f"{name}.tsv"
        path.parent.mkdir(parents=True)
        path.write_text(f"s\th:m:s\n{took}\t0:00:0{took}\n")
        os.utime(path, (ended, ended))
    write_json(tmp_path / "runs" / "toy" / "line" / "toy" / "0-1.json", {"seconds": 7.0})
    table, wall = workflow.measure(tmp_path, cores=2)
    assert wall == 10
    assert table.set_index("rule")["share"].to_dict() == pytest.approx(
        {
            "train_algorithm": 0.4,
            "render_artefact": 0.1,
            "train_algorithm: its rounds alone": 0.35,
            "no job": 0.5,
            "all but training's rounds": 0.65,
        }
    )


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(UserError, match="no benchmark of a job"):
        workflow.measure(tmp_path, cores=2)
