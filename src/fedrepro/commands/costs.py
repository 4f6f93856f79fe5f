"""What a plan costs beside time on this machine: GPU-hours and room on the disk, both estimates with their assumptions.

GPU: a job takes the longer of two times. Its arithmetic at the rate assumed for a GPU; and its sequence of steps, each
of which costs a GPU the launch of some hundred small kernels, however little it computes. Clients, seeds and settings
run side by side in one step.

The arithmetic of a gradient step of a network is counted by torch on a model without memory, at the planned width and
batch; of other jobs it is what they take on a core of this machine times that core's measured rate.

Disk: what earlier runs of the same data set and experiment wrote, scaled by the numbers of samples and evaluations; a
guess where nothing ran yet.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.core.federation import LocalWork
from fedrepro.files import read_json

GPU_RATE = 2_000.0  # GFLOP/s that small batches are assumed to reach: a tenth of a 20-TFLOP/s card
GPU_STEP = 1e-3  # seconds a step at least: about 100 kernels of 10 µs
GPU_START = 10.0  # seconds: importing torch, the first kernels, data to the device
SAMPLE_BYTES = 3_100.0  # of a data set that was never prepared: a colour picture of 32 × 32
EVALUATION_BYTES = 400.0  # of a run that was never made: some ten compressed numbers a run and evaluated round
#: data sets that networks are trained on → (shape of a sample, outputs); a text's windows are counted for their length
SHAPES = {
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "emnist": ((1, 28, 28), 62),
    "fashion_mnist": ((1, 28, 28), 10),
    "femnist": ((1, 28, 28), 62),
    "mnist": ((1, 28, 28), 10),
    "mnist5k": ((1, 28, 28), 10),
    "shakespeare": ((80,), 80),
    "stl10": ((3, 96, 96), 10),
}
COUNTED_WINDOW = 8  # symbols of a text that are counted: the others cost the same
ARTEFACT_BYTES, STUDY_BYTES = 0.5e6, 5e6  # a figure in its four files; a notebook in two forms and a part of the report


def core_rate(size: int = 512, seconds: float = 0.1) -> float:
    """GFLOP/s of one core of this machine in products of float32 matrices."""
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
    """Arithmetic of one gradient step; 0 where it is not known, or too little to matter. samples: those of a client."""
    shape, outputs = SHAPES.get(e.spec["dataset"]["name"], (None, 0))
    if shape is None:
        return 0.0
    batch = e.spec["local"]["batch"]
    batch = samples if batch == "full" else batch
    return batch * _sample_flops(json.dumps(e.spec["model"], sort_keys=True), shape, outputs)


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
    """Of one training job with so much arithmetic; samples: those of a client."""
    steps, _ = LocalWork.from_spec(e.spec["local"]).steps_for(max(1, samples))
    return GPU_START + max(e.spec["rounds"] * steps * GPU_STEP, flops / (1e9 * GPU_RATE))


@dataclass(frozen=True)
class Sizes:
    """Bytes that earlier runs wrote: a sample of a data set; an evaluated round of one setting and seed."""

    sample: dict[str, float]
    evaluation: dict[tuple[str, str], float]

    @classmethod
    def found(cls, results: Path) -> Sizes:
        sample, evaluation = {}, {}
        for about in results.glob("*/data/*/*.json"):
            known, file = read_json(about), about.with_suffix(".npz")
            if file.exists() and (total := sum(known["samples"].values())):
                seeds = 1 if about.stem == "all" else _seeds(about.stem)
                sample[known["name"]] = file.stat().st_size / total / seeds
        for manifest in results.glob("*/runs/*/*/*/*.json"):
            run, file = read_json(manifest), manifest.with_suffix(".parquet")
            if file.exists() and "config" in run:
                e = Experiment(*run["experiment"].split("/"), run["scale"], manifest, run["config"])
                count = _evaluations(e, run["algorithm"], len(run["seeds"]))
                evaluation[run["experiment"], run["algorithm"]] = file.stat().st_size / count
        return cls(sample, evaluation)

    def run(self, e: Experiment, algorithm: str, seeds: int) -> float:
        each = self.evaluation.get((e.id, algorithm), EVALUATION_BYTES)
        return each * _evaluations(e, algorithm, seeds)

    def data(self, experiments: Iterable[Experiment]) -> float:
        """Of every data set once, of those that differ by seed once a seed."""
        bytes_of = {}
        for e in experiments:
            entry = parts.dataset(e.spec["dataset"]["name"])
            parameters = {k: v for k, v in e.spec["dataset"].items() if k != "name"}
            _, total = entry.size(**parameters)
            each = total * self.sample.get(e.spec["dataset"]["name"], SAMPLE_BYTES)
            seeds = e.spec["seeds"] if entry.seeded else 1
            bytes_of[e.dataset_id] = max(bytes_of.get(e.dataset_id, 0.0), each * seeds)
        return sum(bytes_of.values())


def _evaluations(e: Experiment, algorithm: str, seeds: int) -> int:
    rounds = 1 + -(-e.spec["rounds"] // e.spec["evaluate"]["every"])
    return rounds * seeds * len(e.settings(algorithm))


def _seeds(shard: str) -> int:
    first, last = map(int, shard.split("-"))
    return last - first + 1
