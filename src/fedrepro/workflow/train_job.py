"""One training job: an experiment, an algorithm, a shard of the seeds → tidy metrics and a manifest."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import gc
import math
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fedrepro.core import parts, streams
from fedrepro.core.algorithm import Problem
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import build, initialise
from fedrepro.core.params import Params
from fedrepro.core.rounds import Participation, Plan, Progress, Replicate, train
from fedrepro.core.streams import seeds_of
from fedrepro.core.task import Task
from fedrepro.data import assignment as federation_files
from fedrepro.data import dataset as data_files
from fedrepro.errors import UserError
from fedrepro.files import read_json, sha256_of, write_atomically, write_json

if TYPE_CHECKING:
    from fedrepro.core.experiment import Experiment

#: images that would take more bytes than this as floats are scaled when they are read, not beforehand
LARGE = 2**30


@dataclass(frozen=True)
class Inputs:
    """The files a job reads."""

    dataset: Path
    federation: Path


@dataclass(frozen=True)
class Machine:
    """Where and how a job runs."""

    device: str = "cpu"
    strategy: str = "declared"  # by the experiment, else by the model; or loop, vmap
    threads: int = 1
    checkpoint_seconds: float = 10.0


def train_shard(
    experiment: Experiment,
    algorithm: str,
    shard: str,
    inputs: Inputs,
    machine: Machine,
    made: Mapping[str, Any],
    out: Path,
    checkpoints: Path,
) -> None:
    """Run the job and write `out`.parquet and `out`.json, each atomically.

    made: what the manifest says of the code, the versions and the machine (`fedrepro.evidence.provenance.about`).
    """
    started = time.monotonic()
    torch.set_num_threads(machine.threads)
    keep_freed_memory()
    methods = experiment.methods(algorithm)
    known = {k: read_json(path.with_suffix(".json")) for k, path in vars(inputs).items()}
    job = sha256_of(
        [experiment.job_sha256(algorithm), shard, made["code_sha256"], known["dataset"], known["federation"]]
    )
    progress = Progress(experiment.spec["rounds"])
    device = torch.device(machine.device)
    checkpoint = Checkpoint(checkpoints / f"{job[:32]}.pt", machine.checkpoint_seconds, say=progress.line)

    task, plan, replicates = prepare(experiment, algorithm, shard, inputs, device)
    asked = experiment.spec.get("strategy") if machine.strategy == "declared" else machine.strategy
    name = task.model.strategy(device.type, asked)
    with freeze_existing_objects():
        log, counts = train(task, replicates, plan, strategy(name), checkpoint=checkpoint, progress=progress)

    frame = log.frame(experiment.id, algorithm)
    write_atomically(out.with_suffix(".parquet"), frame.to_parquet(None, index=False))
    manifest = {
        "experiment": experiment.id,
        "algorithm": algorithm,
        "method": ", ".join(methods),
        "shard": shard,
        "scale": experiment.scale,
        "seeds": seeds_of(shard),
        "config": {**experiment.spec, "algorithms": {algorithm: experiment.spec["algorithms"][algorithm]}},
        "settings": experiment.origins(algorithm),
        "config_sha256": experiment.job_sha256(algorithm),
        "data": known["dataset"],
        "federation_sha256": known["federation"]["sha256"],
        "device": str(device),
        "threads": machine.threads,
        "strategy": name if replicates[0].algorithm.iterative else None,
        "gradient_steps": counts["gradient_steps"],
        "resumed_from": counts["resumed_from"] if counts["resumed_from"] >= 0 else None,
        "diverged": [
            {"setting": r.setting, "seed": r.seed, "round": r.diverged} for r in replicates if r.diverged is not None
        ],
        "peak_memory_mb": peak_memory_mb(),
        "seconds": round(time.monotonic() - started, 3),
        **made,
    }
    write_json(out.with_suffix(".json"), manifest)
    checkpoint.remove()


def prepare(
    experiment: Experiment, algorithm: str, shard: str, inputs: Inputs, device: torch.device
) -> tuple[Task, Plan, list[Replicate]]:
    """The task, the plan, and one replicate per (setting, seed)."""
    spec = experiment.spec
    dtype = getattr(torch, spec["dtype"])
    work = LocalWork.from_spec(spec["local"])
    who = spec["participation"]
    participation = Participation(None if who["clients"] == "all" else who["clients"], who["sampling"], who["weights"])
    evaluation = spec["evaluate"]
    plan = Plan(experiment.id, spec["rounds"], work, participation, evaluation["every"], evaluation["clients"])

    datasets = data_files.load(inputs.dataset)
    federations = load_federations(datasets, federation_files.load(inputs.federation), seeds_of(shard), dtype, device)
    any_data = next(iter(datasets.values()))
    arguments = {k: v for k, v in spec["model"].items() if k != "name"}
    shape, outputs = any_data.train.shape, any_data.outputs
    model = build(parts.model(spec["model"]["name"]), shape, outputs, torch.Generator(), **arguments)
    task, spare = Task(copy.deepcopy(model).to(device, dtype)), Task(model)

    def start(seed: int, *client: int) -> Params:
        """A run's initial model, or one of a client's own."""
        initialise(model, streams.torch_generator(experiment.id, seed, "init", *client))
        return Params({name: value.to(device, dtype) for name, value in spare.parameters().items()})

    problems, initial = {}, {}
    for seed, federation in federations.items():
        initial[seed] = start(seed)
        shares = participation.shares(federation)
        steps = max(work.steps_for(size)[0] for size in federation.train.sizes.tolist())
        own = functools.cache(functools.partial(start, seed))
        problems[seed] = Problem(task, federation, shares, steps, own, plan.rounds)
    makes = [parts.algorithm(method) for method in experiment.methods(algorithm)]
    if len({(make.exchanges, make.iterative, make.noisy) for make in makes}) > 1:
        raise UserError(f"{experiment.path}: algorithms.{algorithm}: its methods do not run alike: give each its own")
    replicates = []
    for setting, hyper in experiment.settings(algorithm).items():
        method = parts.algorithm(experiment.method_of(algorithm, setting))
        for seed, problem in problems.items():
            resolved = method.from_config(hyper).resolve(problem)
            replicates.append(Replicate(setting, seed, resolved, problem, initial[seed]))
    return task, plan, replicates


def load_federations(
    datasets: Mapping[int, data_files.Dataset],
    assignments: Mapping[int, Mapping[str, np.ndarray]],
    seeds: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
) -> dict[int, Federation]:
    """One federation per seed, all on shared tensors: the rows of all seeds' data sets, one after the other."""
    samples: dict[str, Samples] = {}
    rows_of: dict[tuple[str, int], np.ndarray] = {}
    for name in data_files.SPLITS:
        splits = {seed: split for seed, data in datasets.items() if (split := data.splits().get(name)) is not None}
        if splits:
            samples[name], positions = _join(datasets, splits, dtype, device)
            rows_of |= {(name, seed): mine for seed, mine in positions.items()}
    federations = {}
    for seed in seeds:
        mine = assignments[seed]
        source = seed if seed in datasets else -1
        holdings = {}
        for name in data_files.SPLITS:
            if f"{name}/rows" in mine:
                of = str(mine[f"{name}/of"])
                rows = rows_of[of, source][mine[f"{name}/rows"]]
                holdings[name] = Holdings(samples[of], rows, mine[f"{name}/offsets"])
        groups = tuple(map(str, mine["groups"]))
        federations[seed] = Federation(**holdings, groups=groups, facts=dict(datasets[source].facts))
    return federations


def _join(
    datasets: Mapping[int, data_files.Dataset],
    splits: Mapping[int, data_files.Split],
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[Samples, dict[int, np.ndarray]]:
    """One split of all seeds on the device, and the positions of each seed's rows in it.

    Text stays one sequence: a window is a view of it, identified by its first symbol.
    """
    lengths = [len(split.x) for split in splits.values()]
    first = dict(zip(splits, np.cumsum([0, *lengths[:-1]]), strict=True))
    seed, any_split = next(iter(splits.items()))
    scaling = _kept_as_bytes(datasets[seed], any_split, sum(lengths), dtype, device)
    if scaling:
        parts = [torch.from_numpy(split.x).to(device) for split in splits.values()]
    else:
        parts = [_features(datasets[seed], split, dtype, device) for seed, split in splits.items()]
    x = torch.cat(parts) if len(parts) > 1 else parts[0]
    if any_split.start is None:
        labels = np.concatenate([split.y for split in splits.values()])
        positions = {seed: first[seed] + np.arange(len(split)) for seed, split in splits.items()}
    else:
        x = x.unfold(0, any_split.window, 1)
        labels = np.zeros(len(x), dtype=any_split.y.dtype)
        positions = {seed: first[seed] + np.asarray(split.start, np.int64) for seed, split in splits.items()}
        for seed, split in splits.items():
            labels[positions[seed]] = split.y
    y = torch.from_numpy(labels)
    return Samples(x, y.to(device, dtype if y.is_floating_point() else torch.int64), *scaling), positions


def _kept_as_bytes(
    data: data_files.Dataset, split: data_files.Split, rows: int, dtype: torch.dtype, device: torch.device
) -> tuple[torch.Tensor, ...]:
    """(offset, factor) where the samples are bytes and would be LARGE as numbers of the run's type; else nothing."""
    large = rows * math.prod(split.shape) * dtype.itemsize > LARGE
    if data.offset is None or split.start is not None or split.x.dtype != np.uint8 or not large:
        return ()
    return tuple(torch.from_numpy(np.asarray(v)).to(device, dtype) for v in (data.offset, data.factor))


def _features(
    data: data_files.Dataset, split: data_files.Split, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """(x − offset) · factor in the run's type; symbols of a text stay integers."""
    x = torch.from_numpy(split.x).to(device)
    if split.start is not None:
        return x
    x = x.to(dtype)
    if data.offset is None:
        return x
    offset, factor = (torch.from_numpy(np.asarray(v)).to(device, dtype) for v in (data.offset, data.factor))
    return x.sub_(offset).mul_(factor) if split.x.dtype == np.uint8 else (x - offset) * factor


@contextlib.contextmanager
def freeze_existing_objects() -> Iterator[None]:
    """Keep the garbage collector off the objects that exist already: torch alone has hundreds of thousands, and a round
    of thousands of clients would traverse them again and again."""
    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()


def keep_freed_memory() -> None:
    """Make glibc keep large freed blocks: each round allocates and frees the same ones, and returning them to the
    kernel takes up to a third of a vectorised round."""
    if sys.platform == "linux":
        try:
            c = ctypes.CDLL(None)
            c.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD
            c.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        except (OSError, AttributeError):
            pass  # another C library: only speed is lost


def peak_memory_mb() -> float:
    """The largest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
