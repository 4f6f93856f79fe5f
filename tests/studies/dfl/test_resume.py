"""A job at published settings, interrupted and killed, ends with the bytes of an undisturbed one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from fedrepro.core.experiment import load_experiment
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.files import ROOT, read_json

EXPERIMENT, ALGORITHM, SHARD = "dfl/line_iid", "dfl", "0-9"  # 160 epochs of five settings, ten seeds: some seconds
TRAIN = """
import sys
from pathlib import Path
from fedrepro.core.experiment import load_experiment
from fedrepro.workflow.train_job import Inputs, Machine, train_shard

folder, out, (experiment, algorithm, shard) = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:6]
inputs = Inputs(folder / "data.npz", folder / "federation.npz")
machine = Machine("cpu", "declared", checkpoint_seconds=0.1)
chosen = load_experiment(Path("config"), experiment, "paper")
train_shard(chosen, algorithm, shard, inputs, machine, {"code_sha256": "code"}, out, out.parent / "checkpoints")
"""


@pytest.fixture
def start(tmp_path, usual_signals):
    spec = load_experiment(ROOT / "config", EXPERIMENT, "paper").spec
    seeds = list(range(10))
    prepare_data("data", spec["dataset"], seeds, "auto", [], tmp_path / "data.npz")
    partition_data("federation", spec["partition"], seeds, tmp_path / "data.npz", tmp_path / "federation.npz")
    started = []

    def begin(name: str) -> subprocess.Popen:
        out = tmp_path / name / "run"
        out.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-c", TRAIN, str(tmp_path), str(out), EXPERIMENT, ALGORITHM, SHARD]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


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
    assert manifest["config"]["rounds"] == load_experiment(ROOT / "config", EXPERIMENT, "paper").spec["rounds"]
    assert 0 < manifest["resumed_from"] < manifest["config"]["rounds"]
    assert (broken / "run.parquet").read_bytes() == (tmp_path / "whole" / "run.parquet").read_bytes()
