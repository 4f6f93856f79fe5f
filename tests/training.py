"""Training jobs in processes of their own, which a test interrupts or kills."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fedrepro.core.experiment import load_experiment
from fedrepro.core.streams import seeds_of
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.files import ROOT

TRAIN = """
import sys
from pathlib import Path
from fedrepro.core.experiment import load_experiment
from fedrepro.workflow.train_job import Inputs, Machine, train_shard

folder, out, config = (Path(word) for word in sys.argv[1:4])
name, algorithm, shard, strategy, seconds = sys.argv[4:]
experiment = load_experiment(config, name, "paper")
inputs = Inputs(folder / "data.npz", folder / "federation.npz")
machine = Machine("cpu", strategy, checkpoint_seconds=float(seconds))
train_shard(experiment, algorithm, shard, inputs, machine, {"code_sha256": "code"}, out, out.parent / "checkpoints")
"""


@dataclass(frozen=True)
class TrainingJob:
    """What is trained, at the paper's scale."""

    config: Path
    experiment: str
    algorithm: str
    shard: str
    strategy: str = "declared"

    def prepare(self, folder: Path) -> None:
        """Write data.npz and federation.npz into the folder."""
        spec, seeds = load_experiment(self.config, self.experiment, "paper").spec, seeds_of(self.shard)
        prepare_data("data", spec["dataset"], seeds, "auto", [], folder / "data.npz")
        partition_data("federation", spec["partition"], seeds, folder / "data.npz", folder / "federation.npz")

    def command(self, folder: Path, out: Path, checkpoint_seconds: float) -> list[str]:
        what = (self.experiment, self.algorithm, self.shard, self.strategy)
        return [sys.executable, "-c", TRAIN, str(folder), str(out), str(self.config), *what, str(checkpoint_seconds)]


def environment_of(folder: Path) -> dict[str, str]:
    """With the sources of this checkout, and a cache in the folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(folder / "cache")}


@contextmanager
def processes_of(job: TrainingJob, folder: Path) -> Iterator[Callable[[Path, float], subprocess.Popen[str]]]:
    """Prepare the job's data. begin(out, seconds between checkpoints) starts the job; at the end all are killed."""
    job.prepare(folder)
    started: list[subprocess.Popen[str]] = []

    def begin(out: Path, checkpoint_seconds: float) -> subprocess.Popen[str]:
        out.parent.mkdir(exist_ok=True)
        command = job.command(folder, out, checkpoint_seconds)
        started.append(subprocess.Popen(command, env=environment_of(folder), stderr=subprocess.PIPE, text=True))
        return started[-1]

    try:
        yield begin
    finally:
        for process in started:
            process.kill()
            process.communicate()
