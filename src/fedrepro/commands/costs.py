"""GPU-hours and disk space of a plan: estimates.

GPU: a job takes the longer of two times: its arithmetic at the assumed rate, and its sequence of steps, each of which
launches about a hundred small kernels, however little it computes. Clients, seeds and settings share a step.

torch counts the arithmetic of a network's gradient step on a model without memory, at the planned width and batch.
For other jobs it is their time on a core of this machine times the measured rate of that core.

Disk: the files of earlier runs, scaled by the numbers of samples and evaluations; a guess before the first run.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.core.federation import LocalWork
from fedrepro.core.streams import seeds_of
from fedrepro.files import read_json

GPU_RATE = 2_000.0  # GFLOP/s assumed for small batches: a tenth of a 20-TFLOP/s card
GPU_STEP = 1e-3  # least seconds per step: about 100 kernels of 10 µs
GPU_START = 10.0  # seconds: importing torch, the first kernels, data to the device
SAMPLE_BYTES = 3_100.0  # of an unprepared data set: a colour picture of 32 × 32
EVALUATION_BYTES = 400.0  # before the first run: about ten compressed numbers per run and evaluated round
#: data sets that networks are trained on → (shape of a sample, outputs); a text's sample is its window
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    **dict.fromkeys(("fashion_mnist", "mnist", "mnist5k"), ((1, 28, 28), 10)),
    **dict.fromkeys(("emnist", "femnist"), ((1, 28, 28), 62)),
    **{"cifar10": ((3, 32, 32), 10), "cifar100": ((3, 32, 32), 100), "stl10": ((3, 96, 96), 10)},
    "shakespeare": ((80,), 80),
}
COUNTED_WINDOW = 8  # symbols of a text that are counted: all cost the same
ARTEFACT_BYTES = 0.5e6  # four files
STUDY_BYTES = 5e6  # a notebook in two formats and a share of the report


def experiment_of(manifest: dict[str, Any], path: Path) -> Experiment:
    """The experiment of an earlier run."""
    study, name = manifest["experiment"].split("/")
    return Experiment(study, name, manifest["scale"], path, manifest["config"])


def size_of(e: Experiment) -> tuple[int | None, int]:
    """(clients, None where the partition makes them; training samples) of the experiment's data set."""
    parameters = {k: v for k, v in e.spec["dataset"].items() if k != "name"}
    size: tuple[int | None, int] = parts.dataset(e.spec["dataset"]["name"]).size(**parameters)
    return size


def core_rate(size: int = 512, seconds: float = 0.1) -> float:
    """GFLOP/s of one core of this machine, multiplying float32 matrices."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    a = torch.ones(size, size)
    a @ a
    begin, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - begin) < seconds:
        a @ a
        count += 1
    torch.set_num_threads(threads)
    return 2 * size**3 * count / spent / 1e9


def step_flops(e: Experiment, samples: int) -> float:
    """Operations per gradient step; 0 where unknown or negligible. samples: per client."""
    name, batch = e.spec["dataset"]["name"], e.spec["local"]["batch"]
    if name not in SHAPES:
        return 0.0
    each = _sample_flops(json.dumps(e.spec["model"], sort_keys=True), *SHAPES[name])
    return (samples if batch == "full" else batch) * each


@functools.cache
def _sample_flops(model: str, shape: tuple[int, ...], outputs: int) -> float:
    arguments = json.loads(model)
    make = parts.model(arguments.pop("name"))
    text = len(shape) == 1
    counted = (COUNTED_WINDOW,) if text else shape
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        x = torch.zeros(2, *counted, dtype=torch.int64 if text else None)  # two: a batch norm needs a spread
        make(shape, outputs, **arguments)(x).sum().backward()
    return counter.get_total_flops() / 2 * (shape[0] / COUNTED_WINDOW if text else 1)


def gpu_seconds(e: Experiment, samples: int, flops: float) -> float:
    """GPU time of a training job of `flops` operations. samples: per client."""
    steps, _ = LocalWork.from_spec(e.spec["local"]).steps_for(max(1, samples))
    return GPU_START + max(e.spec["rounds"] * steps * GPU_STEP, flops / (1e9 * GPU_RATE))


@dataclass(frozen=True)
class Sizes:
    """Bytes in earlier runs: per sample of a data set; per evaluated round, setting and seed of an algorithm."""

    sample: dict[str, float]
    evaluation: dict[tuple[str, str], float]

    @classmethod
    def found(cls, results: Path) -> Sizes:
        sample: dict[str, float] = {}
        evaluation: dict[tuple[str, str], float] = {}
        for about in results.glob("*/data/*/*.json"):
            known, file = read_json(about), about.with_suffix(".npz")
            if file.exists() and (total := sum(known["samples"].values())):
                seeds = 1 if about.stem == "all" else len(seeds_of(about.stem))
                sample[known["name"]] = file.stat().st_size / total / seeds
        for manifest in results.glob("*/runs/*/*/*/*.json"):
            run, file = read_json(manifest), manifest.with_suffix(".parquet")
            if file.exists() and "config" in run:
                count = _evaluations(experiment_of(run, manifest), run["algorithm"], len(run["seeds"]))
                evaluation[run["experiment"], run["algorithm"]] = file.stat().st_size / count
        return cls(sample, evaluation)

    def run(self, e: Experiment, algorithm: str, seeds: int) -> float:
        return self.evaluation.get((e.id, algorithm), EVALUATION_BYTES) * _evaluations(e, algorithm, seeds)

    def data(self, experiments: Iterable[Experiment]) -> float:
        """Bytes of all data sets; those that differ by seed count once per seed."""
        bytes_of: dict[str, float] = {}
        for e in experiments:
            name = e.spec["dataset"]["name"]
            each = size_of(e)[1] * self.sample.get(name, SAMPLE_BYTES)
            seeds = e.spec["seeds"] if parts.dataset(name).seeded else 1
            bytes_of[e.dataset_id] = max(bytes_of.get(e.dataset_id, 0.0), each * seeds)
        return sum(bytes_of.values())


def _evaluations(e: Experiment, algorithm: str, seeds: int) -> int:
    rounds = 1 + -(-e.spec["rounds"] // e.spec["evaluate"]["every"])
    return rounds * seeds * len(e.settings(algorithm))
