"""Estimates before anything runs: gradient steps, time, GPU-hours and disk of the jobs.

A training job's time is its gradient steps at the pace of an earlier run of the same experiment and algorithm here, at
any scale that took some seconds; a larger network or batch adds its arithmetic at the rate of a core. Without one, the
time is a guess from the arithmetic, and marked as one.

GPU: a job takes the longer of two times: its arithmetic at the assumed rate, and its sequence of steps, each of which
launches about a hundred small kernels, however little it computes. Clients, seeds and settings share a step. torch
counts the arithmetic of a network's gradient step on a model without memory, at the planned width and batch; for other
jobs it is their time on a core of this machine times the measured rate of that core.

Disk: the files of earlier runs, scaled by the numbers of samples and evaluations; a guess before the first run.
"""

import functools
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.core.federation import LocalWork
from fedrepro.core.streams import seeds_of
from fedrepro.files import read_json
from fedrepro.workflow.counts import OTHER_JOBS, client_samples, clients_of, size_of

if TYPE_CHECKING:
    from fedrepro.workflow.layout import Layout

START = 2.5  # seconds: importing torch
#: gradient steps per second before the first run, on one core: of a small network; of a linear model, whose clients
#: are stacked and whose full batches reduce to a matrix
UNKNOWN_PACE, UNKNOWN_LINEAR_PACE = 5_000.0, 200_000.0
TELLING = 5.0  # seconds: a shorter run measures its start more than its steps
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


@dataclass(frozen=True)
class TrainingJob:
    experiment: str
    algorithm: str
    shard: str
    seeds: int
    steps: int
    seconds: float
    measured: bool
    gpu_seconds: float
    bytes: float


def needed_experiments(layout: "Layout") -> list[Experiment]:
    """Those of the chosen artefacts and of the studies that are judged as a whole."""
    chosen = {(layout.artefacts[a]["study"], e) for a in layout.chosen for e in layout.artefacts[a]["experiments"]}
    chosen |= {(e.study, e.name) for e in layout.experiments.values() if e.study in layout.whole_studies}
    return [layout.experiments[f"{study}/{name}"] for study, name in sorted(chosen)]


def other_job_counts(layout: "Layout", experiments: Iterable[Experiment]) -> dict[str, int]:
    """Rule → its jobs in a run from scratch, training apart."""
    experiments = list(experiments)
    shards = [(e, shard) for e in experiments for shard in e.shards()]
    data = {layout.at(f"data/{e.dataset_id}/{layout.data_shard(e.dataset_id, shard)}.npz") for e, shard in shards}
    judged = len({*layout.ledgers, *(layout.at(f"ledgers/{study}.csv") for study in layout.whole_studies)})
    return {
        "prepare_data": len(data.union(*map(layout.samples, layout.chosen))),
        "partition_data": len({(e.federation_id, shard) for e, shard in shards}),
        "collect_metrics": len(experiments),
        "render_artefact": len(layout.chosen),
        "execute_notebook": len(layout.notebooks),
        "judge_claims": judged,
        "merge_ledgers": int(judged > 0),
        "build_report": 1,
        "all": 1,
    }


def other_seconds(counts: Mapping[str, int]) -> float:
    return sum(OTHER_JOBS[rule] * count for rule, count in counts.items())


def training_jobs(results: Path, experiments: Iterable[Experiment], rate: float) -> Iterator[TrainingJob]:
    """Every training job with its estimates. results: of all scales; rate: GFLOP/s of a core of this machine."""
    paces, sizes = _paces(results), Sizes.found(results)
    for e in experiments:
        samples = client_samples(e)
        flops = step_flops(e, samples)
        for algorithm, shard in e.jobs():
            known, seeds = paces.get((e.id, algorithm)), len(seeds_of(shard))
            steps = gradient_steps(e, algorithm, seeds)
            seconds = steps / unknown_pace(e, flops, rate)
            if known:
                seconds = known.seconds_of(steps, seeds * len(e.settings(algorithm)), flops, rate)
            gpu = gpu_seconds(e, samples, steps * flops or 1e9 * rate * seconds)
            room = sizes.run(e, algorithm, seeds)
            yield TrainingJob(e.id, algorithm, shard, seeds, steps, START + seconds, known is not None, gpu, room)


def unknown_pace(e: Experiment, flops: float, rate: float) -> float:
    """Gradient steps per second on a core of `rate` GFLOP/s, for an experiment without an earlier run."""
    if e.spec["model"]["name"].startswith("linear"):
        return UNKNOWN_LINEAR_PACE
    return 1 / (1 / UNKNOWN_PACE + flops / (1e9 * rate))


def gradient_steps(e: Experiment, algorithm: str, seeds: int) -> int:
    """Rounds × clients per round × local steps × settings × seeds; 0 for a method without rounds."""
    if not parts.algorithm(e.methods(algorithm)[0]).iterative:  # all methods of a job agree in this
        return 0
    clients, asked = clients_of(e), e.spec["participation"]["clients"]
    taking_part = clients if asked == "all" else min(asked, clients)
    steps, _ = LocalWork.from_spec(e.spec["local"]).steps_for(client_samples(e))
    return int(e.spec["rounds"] * taking_part * steps * len(e.settings(algorithm)) * seeds)


@dataclass(frozen=True)
class Known:
    """An earlier job: its time, gradient steps, seeds × settings, and operations per step."""

    seconds: float
    steps: int
    runs: int
    flops: float

    def seconds_of(self, steps: int, runs: int, flops: float, rate: float) -> float:
        """Time of a job of the same experiment and algorithm at another scale, on a core of `rate` GFLOP/s."""
        if not self.steps:  # a method without rounds
            return self.seconds * runs / self.runs
        return steps * (self.seconds / self.steps + max(0.0, flops - self.flops) / (1e9 * rate))


def _paces(results: Path) -> dict[tuple[str, str], Known]:
    """(experiment, algorithm) → its largest run that took long enough."""
    largest: dict[tuple[str, str], Known] = {}
    for path in results.glob("*/runs/*/*/*/*.json"):
        run = read_json(path)
        if run["resumed_from"] is None and (run["seconds"] > TELLING or not run["gradient_steps"]):
            e = experiment_of(run, path)
            runs, flops = len(run["seeds"]) * len(e.settings(run["algorithm"])), step_flops(e, client_samples(e))
            found, key = Known(run["seconds"], run["gradient_steps"], runs, flops), (e.id, run["algorithm"])
            largest[key] = max(found, largest.get(key, found), key=lambda known: (known.steps, known.runs))
    return largest


def experiment_of(manifest: dict[str, Any], path: Path) -> Experiment:
    """The experiment of an earlier run."""
    study, name = manifest["experiment"].split("/")
    return Experiment(study, name, manifest["scale"], path, manifest["config"])


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
    if (name := e.spec["dataset"]["name"]) not in SHAPES:
        return 0.0
    each = _sample_flops(json.dumps(e.spec["model"], sort_keys=True), *SHAPES[name])
    return LocalWork.from_spec(e.spec["local"]).width(samples) * each


@functools.cache
def _sample_flops(model: str, shape: tuple[int, ...], outputs: int) -> float:
    arguments, text = json.loads(model), len(shape) == 1
    make, counted = parts.model(arguments.pop("name")), (COUNTED_WINDOW,) if text else shape
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        x = torch.zeros(2, *counted, dtype=torch.int64 if text else None)  # two: a batch norm needs a spread
        make(shape, outputs, **arguments)(x).sum().backward()
    return float(counter.get_total_flops() / 2 * (shape[0] / COUNTED_WINDOW if text else 1))


def gpu_seconds(e: Experiment, samples: int, flops: float) -> float:
    """GPU time of a training job of `flops` operations. samples: per client."""
    steps, _ = LocalWork.from_spec(e.spec["local"]).steps_for(max(1, samples))
    return float(GPU_START + max(e.spec["rounds"] * steps * GPU_STEP, flops / (1e9 * GPU_RATE)))


@dataclass(frozen=True)
class Sizes:
    """Bytes in earlier runs: per sample of a data set; per evaluated round, setting and seed of an algorithm."""

    sample: dict[str, float]
    evaluation: dict[tuple[str, str], float]

    @classmethod
    def found(cls, results: Path) -> Self:
        sample: dict[str, float] = {}
        evaluation: dict[tuple[str, str], float] = {}
        for about in results.glob("*/data/*/*.json"):
            known, file = read_json(about), about.with_suffix(".npz")
            size = file.stat().st_size if file.exists() else 0  # 0: emptied, see workflow/spare_data.py
            if size and (total := sum(known["samples"].values())):
                seeds = 1 if about.stem == "all" else len(seeds_of(about.stem))
                sample[known["name"]] = size / total / seeds
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
    return int(rounds * seeds * len(e.settings(algorithm)))
