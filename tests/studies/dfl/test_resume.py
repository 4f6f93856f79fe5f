"""A job at published settings, interrupted and killed, ends with the bytes of an undisturbed one."""

from __future__ import annotations

import signal
import time

import pytest

from fedrepro.core.experiment import load_experiment
from fedrepro.files import ROOT, read_json
from tests.training import TrainingJob, processes_of

#: 160 epochs of five settings, ten seeds: some seconds
JOB = TrainingJob(ROOT / "config", "dfl/line_iid", "dfl", "0-9")


@pytest.fixture
def start(tmp_path, usual_signals):
    with processes_of(JOB, tmp_path) as begin:
        yield lambda name: begin(tmp_path / name / "run", 0.1)


def test_ctrl_c_and_kill_of_a_job_at_published_settings_leave_its_bytes_as_they_are(start, tmp_path):
    assert start("whole").wait() == 0
    broken = tmp_path / "broken"
    seen = b""
    for stop in (signal.SIGINT, signal.SIGKILL):
        process = start("broken")
        while (kept := b"".join(p.read_bytes() for p in broken.glob("checkpoints/*.pt"))) == seen:
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.send_signal(stop)
        assert process.wait() != 0
        seen = kept
    assert start("broken").wait() == 0
    manifest = read_json(broken / "run.json")
    assert manifest["config"]["rounds"] == load_experiment(JOB.config, JOB.experiment, "paper").spec["rounds"]
    assert 0 < manifest["resumed_from"] < manifest["config"]["rounds"]
    assert (broken / "run.parquet").read_bytes() == (tmp_path / "whole" / "run.parquet").read_bytes()
