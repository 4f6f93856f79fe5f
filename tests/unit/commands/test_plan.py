"""The plan in words."""

from __future__ import annotations

import re
from types import SimpleNamespace

from fedrepro.commands import cli, plan
from fedrepro.workflow.layout import Layout
from tests.configs import write_config, write_yaml


def test_the_plan_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = plan.describe(Layout(write_config(tmp_path)), cores=2)
    assert re.search(r"about 0\.0 GPU-hours, the longest job 10 s \(a core here computes \d+ GFLOP/s; assumed", text)
    assert re.search(r"about 0\.0\d GB on the disk", text)
    assert "scale smoke: 13 jobs from scratch, 2 training, 240 gradient steps" in text
    assert text.count("never ran here") == 2


def test_wrong_input_is_one_line(tmp_path, monkeypatch, capsys):
    write_config(tmp_path)
    (tmp_path / "config" / "config.yaml").write_text(
        "{scale: smoke, only: [], data: auto, data_dir: null, device: auto, strategy: loop, results: r, config: config}"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "CONFIG", tmp_path / "config")
    assert cli.main(["plan", "scale=smok"]) == 1
    assert capsys.readouterr().err.strip().endswith("scale: 'smok' is unknown; did you mean 'smoke'? (or demo)")
    assert cli.main(["plan", "only=toy/fig3b"]) == 0
    assert "toy/line" in capsys.readouterr().out


def test_a_fleet_of_gpus_by_hand():
    """Jobs of 5, 4, 3, 3 seconds: two GPUs have 5 + 3 and 4 + 3."""
    jobs = [SimpleNamespace(gpu_seconds=seconds) for seconds in (3.0, 5.0, 3.0, 4.0)]
    assert [plan.makespan(jobs, gpus) for gpus in (1, 2, 4, 32)] == [15.0, 8.0, 5.0, 5.0]


def test_a_plan_for_gpus_is_per_study_and_per_claim(tmp_path, monkeypatch):
    config = write_config(tmp_path)
    claim = {"source": "§IV", "origin": "paper", "statement": "S.", "kind": "threshold", "measured_on": "synthetic"}
    claim |= {"ours": {"experiment": "line", "algorithm": "fedavg", "metric": "loss"}, "at_most": 1.0}
    write_yaml(
        tmp_path / "config/studies/toy/claims.yaml", {"claims": {"agree": {**claim, "margin": {"absolute": 0.0}}}}
    )
    monkeypatch.chdir(tmp_path)
    text = plan.describe(Layout({**config, "device": "cuda"}), cores=2)
    # two jobs of ten seconds each
    assert "on 1 GPUs 20 s, 8 GPUs 10 s, 32 GPUs 10 s; one job per GPU" in text
    assert re.search(r"\ntoy +0\.01\n  agree +0\.01", text)
    assert "GPUs" not in plan.describe(Layout({**config, "device": "cpu"}), cores=2).replace("GPU-hours", "")
