"""A killed training job resumes at its checkpoint and ends with the bytes of an undisturbed one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fedrepro.core.checkpoint_file import read_header
from fedrepro.files import read_json
from tests.configs import EXPERIMENT, changed, write_study, write_yaml
from tests.training import TrainingJob, environment_of, processes_of

ROUNDS = 600
CHANGES = {
    "rounds": ROUNDS,
    "seeds": 2,
    "local": {"epochs": 1, "batch": 2},
    "participation.clients": 3,
    "evaluate.every": 20,
    "algorithms": {"local": {"grid": {"lr": [0.01, 0.02]}}},  # keeps a state at every client
}


def write_experiment(folder: Path, changes: dict[str, Any]) -> TrainingJob:
    write_yaml(write_study(folder / "config", "toy") / "experiments" / "line.yaml", changed(EXPERIMENT, changes))
    return TrainingJob(folder / "config", "toy/line", "local", "0-1", "loop")


@pytest.fixture
def start(tmp_path):
    with processes_of(write_experiment(tmp_path, CHANGES), tmp_path) as begin:
        yield begin


def test_a_killed_job_resumes_and_ends_with_the_same_bytes(start, tmp_path):
    whole, broken = tmp_path / "whole" / "0-1", tmp_path / "broken" / "0-1"
    undisturbed = start(whole, 1e9)
    victim = start(broken, 0.0)
    deadline = time.monotonic() + 600  # only a hang takes this long
    while not any(read_header(path)["round"] > 0 for path in (tmp_path / "broken").glob("checkpoints/*.pt")):
        assert victim.poll() is None, victim.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    victim.kill()
    assert victim.wait() == -9
    assert not broken.with_suffix(".parquet").exists()
    (kept,) = (tmp_path / "broken").glob("checkpoints/*.pt")
    (kept.parent / f".{kept.name}.half").touch()  # left by a kill during a write

    again = start(broken, 1e9)
    for process in (undisturbed, again):
        _, told = process.communicate(timeout=600)
        assert process.returncode == 0, told
    manifests = [read_json(out.with_suffix(".json")) for out in (whole, broken)]
    assert manifests[0]["resumed_from"] is None
    assert 0 < manifests[1]["resumed_from"] < ROUNDS
    assert manifests[0]["gradient_steps"] == manifests[1]["gradient_steps"]
    assert whole.with_suffix(".parquet").read_bytes() == broken.with_suffix(".parquet").read_bytes()
    assert not list((tmp_path / "broken" / "checkpoints").iterdir())


#: states: one model per client; the server's; the model alone; one dual variable per client; noise and a memory
SEVERAL = {"local": {"lr": 0.01}, "afl": {"lr": 0.01}, "fedprox": {"lr": 0.01}}
SEVERAL |= {"fedpd": {"lr": 0.01}, "fed_sgld": {"lr": 0.01}}
KILLS = 4  # per algorithm
KILL = """
import json, os, random, signal, sys, time, traceback
from pathlib import Path
from fedrepro.core.experiment import load_experiments
from fedrepro.workflow.train_job import Inputs, Machine, train_shard

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
experiment = load_experiments(folder / "config", "paper")["toy/line"]
inputs = Inputs(folder / "data.npz", folder / "federation.npz")
moments = random.Random(5)


def train(algorithm, out):  # in a process of its own, forked: torch is imported once for all
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.dup2(os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            machine = Machine(device="cpu", strategy="loop", checkpoint_seconds=0.0)
            known, checkpoints = {"code_sha256": "code"}, out.parent / "checkpoints"
            train_shard(experiment, algorithm, "0-1", inputs, machine, known, out, checkpoints)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def content(out):
    return out.with_suffix(".parquet").read_bytes()


for algorithm in experiment.spec["algorithms"]:
    whole = folder / algorithm / "whole" / "0-1"
    began = time.monotonic()
    assert os.waitpid(train(algorithm, whole), 0)[1] == 0
    seconds, killed = time.monotonic() - began, 0
    while killed < kills:
        out = folder / algorithm / str(killed) / "0-1"
        child = train(algorithm, out)
        time.sleep(moments.uniform(0.0, 0.9) * seconds)
        os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0)[1] != signal.SIGKILL:  # it was faster than before
            for path in out.parent.glob("0-1.*"):
                path.unlink()
            continue
        assert not out.with_suffix(".json").exists()
        assert os.waitpid(train(algorithm, out), 0)[1] == 0
        resumed = json.loads(out.with_suffix(".json").read_text())["resumed_from"]
        print(json.dumps({"algorithm": algorithm, "from": resumed, "same": content(out) == content(whole)}), flush=True)
        killed += 1
"""


def test_twenty_kills_at_random_moments_of_several_algorithms(tmp_path):
    changes = {**CHANGES, "rounds": 30, "evaluate.every": 5, "participation.clients": "all", "algorithms": SEVERAL}
    write_experiment(tmp_path, changes).prepare(tmp_path)
    command = [sys.executable, "-c", KILL, str(tmp_path), str(KILLS)]
    done = subprocess.run(command, env=environment_of(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + (tmp_path / "log").read_text()[-3000:]
    tries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [t["algorithm"] for t in tries] == [name for name in SEVERAL for _ in range(KILLS)]
    assert all(t["same"] for t in tries), tries
    assert len({t["from"] for t in tries}) > 5, tries  # at many different rounds
