"""A training job that is killed goes on where it was and ends with the bytes of an undisturbed one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrepro.files import read_json
from fedrepro.preparation import partition_data, prepare_data
from tests.configs import EXPERIMENT, changed, write_yaml
from tests.workflow.conftest import Checkout

ROUNDS = 600
CHANGES = {
    "rounds": ROUNDS,
    "seeds": 2,
    "local": {"epochs": 1, "batch": 2},
    "participation.clients": 3,
    "evaluate.every": 20,
    "algorithms": {"local": {"grid": {"lr": [0.01, 0.02]}}},  # keeps a state at every client
}
TRAIN = """
import sys
from pathlib import Path
from fedrepro.experiment import load_experiments
from fedrepro.training import Inputs, Machine, train_shard

folder, out, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
experiment = load_experiments(folder / "config", "paper")["dfl/line"]
inputs = Inputs(folder / "data.npz", folder / "federation.npz")
machine = Machine(device="cpu", strategy="loop", checkpoint_seconds=seconds)
train_shard(experiment, "local", "0-1", inputs, machine, out, out.parent / "checkpoints")
"""


@pytest.fixture
def start(tmp_path):
    """Starts the job in a process of its own: start(out, seconds between checkpoints)."""
    spec = changed(EXPERIMENT, CHANGES)
    write_yaml(tmp_path / "config" / "experiments" / "dfl" / "line.yaml", spec)
    prepare_data("data", spec["dataset"], [0, 1], "auto", [], tmp_path / "data.npz")
    partition_data("federation", spec["partition"], [0, 1], tmp_path / "data.npz", tmp_path / "federation.npz")
    started = []

    def begin(out: Path, seconds: float) -> subprocess.Popen:
        out.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-c", TRAIN, str(tmp_path), str(out), str(seconds)]
        environment = Checkout(tmp_path).environment(PYTHONPATH="")
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_a_killed_job_resumes_and_ends_with_the_same_bytes(start, tmp_path):
    whole, broken = tmp_path / "whole" / "0-1", tmp_path / "broken" / "0-1"
    undisturbed = start(whole, 1e9)
    victim = start(broken, 0.0)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "broken").glob("checkpoints/*.pt")):
        assert victim.poll() is None, victim.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(0.3)
    victim.kill()
    assert victim.wait() == -9
    assert not broken.with_suffix(".parquet").exists()
    (kept,) = (tmp_path / "broken").glob("checkpoints/*.pt")
    (kept.parent / f".{kept.name}.half").touch()  # what a kill in the midst of a write leaves

    again = start(broken, 1e9)
    for process in (undisturbed, again):
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0, told
    manifests = [read_json(out.with_suffix(".json")) for out in (whole, broken)]
    assert manifests[0]["resumed_from"] is None
    assert 0 < manifests[1]["resumed_from"] < ROUNDS
    assert manifests[0]["gradient_steps"] == manifests[1]["gradient_steps"]
    assert whole.with_suffix(".parquet").read_bytes() == broken.with_suffix(".parquet").read_bytes()
    assert not list((tmp_path / "broken" / "checkpoints").iterdir())
