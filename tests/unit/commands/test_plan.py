"""The plan in words."""

from __future__ import annotations

import re

from fedrepro.commands import cli, plan
from fedrepro.workflow.layout import Layout
from tests.configs import write_config


def test_the_plan_in_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = plan.describe(Layout(write_config(tmp_path)), cores=2)
    assert re.search(r"about 0\.0 GPU-hours, the longest job 10 s \(a core here computes \d+ GFLOP/s; assumed", text)
    assert re.search(r"about 0\.0\d GB on the disk", text)
    assert "scale smoke: 11 jobs, 2 training, 240 gradient steps" in text
    assert text.count("never ran here") == 2


def test_wrong_input_is_one_line(tmp_path, monkeypatch, capsys):
    write_config(tmp_path)
    (tmp_path / "config" / "config.yaml").write_text(
        "{scale: smoke, only: [], data: auto, data_dir: null, device: auto, strategy: loop, results: r, config: config}"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "CONFIG", tmp_path / "config")
    assert cli.main(["plan", "scale=smok"]) == 1
    assert capsys.readouterr().err.strip().endswith("scale: 'smok' is unknown; did you mean 'smoke'?")
    assert cli.main(["plan", "only=toy/fig3b"]) == 0
    assert "toy/line" in capsys.readouterr().out
