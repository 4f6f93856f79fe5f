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
from threadpoolctl import threadpool_limits

from fedrepro.core import parts, streams
from fedrepro.core.algorithm import Problem
from fedrepro.core.checkpoint import SECONDS, Checkpoint
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import build, initialise
from fedrepro.core.params import Params
from fedrepro.core.progress import Progress
from fedrepro.core.replicates import Participation, Plan, Replicate
from fedrepro.core.rounds import train
from fedrepro.core.streams import seeds_of
from fedrepro.core.task import Task
from fedrepro.data import assignment as federation_files
from fedrepro.data.dataset import SPLITS, Dataset, Split
from fedrepro.data.dataset import load as load_datasets
from fedrepro.errors import UserError
from fedrepro.files import read_json, sha256, write_atomically, write_json
from fedrepro.workflow.job_checkpoints import checkpoint_name, identity

if TYPE_CHECKING:
    from fedrepro.core.experiment import Experiment

LARGE = 2**30  # bytes as floats above which images are scaled when they are read, not beforehand


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
    checkpoint_seconds: float = SECONDS


def use_threads(number: int) -> None:
    """Threads of torch, and of the BLAS that numpy and scipy bring along: those spin while they wait for work, which
    takes a core from the job beside this one."""
    torch.set_num_threads(number)
    threadpool_limits(number)


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
    """Run the job and write `out`.parquet and `out`.json, each atomically. `made` are the manifest's entries on code,
    versions and machine (`fedrepro.evidence.provenance.about`)."""
    started = time.monotonic()
    use_threads(machine.threads)
    keep_freed_memory()
    dataset, federation = (read_json(path.with_suffix(".json")) for path in (inputs.dataset, inputs.federation))
    progress, device = Progress(experiment.spec["rounds"]), torch.device(machine.device)
    task, plan, replicates = prepare(experiment, algorithm, shard, inputs, device)
    asked = experiment.spec.get("strategy") if machine.strategy == "declared" else machine.strategy
    name = task.model.strategy(device.type, asked)
    about = identity(experiment, algorithm, shard, made["code_sha256"], dataset, federation)
    way = {"strategy": name, "device": device.type, "threads": machine.threads}
    where, seconds = checkpoints / checkpoint_name(about), machine.checkpoint_seconds
    checkpoint = Checkpoint(where, way, {**about, "begun_on": made.get("machine")}, seconds, say=progress.line)
    with freeze_existing_objects():
        log, counts = train(task, replicates, plan, strategy(name), checkpoint=checkpoint, progress=progress)

    frame = log.frame(experiment.id, algorithm)
    write_atomically(metrics := out.with_suffix(".parquet"), frame.to_parquet(None, index=False))
    stopped = [r for r in replicates if r.diverged is not None]
    manifest = {
        "experiment": experiment.id,
        "algorithm": algorithm,
        "method": ", ".join(experiment.methods(algorithm)),
        "shard": shard,
        "scale": experiment.scale,
        "seeds": seeds_of(shard),
        "config": {**experiment.spec, "algorithms": {algorithm: experiment.spec["algorithms"][algorithm]}},
        "settings": experiment.origins(algorithm),
        "config_sha256": experiment.job_sha256(algorithm),
        "data": dataset,
        "federation_sha256": federation["sha256"],
        "metrics_sha256": sha256(metrics),
        "device": str(device),
        "threads": machine.threads,
        "strategy": name if replicates[0].algorithm.iterative else None,
        "gradient_steps": counts["gradient_steps"],
        "resumed_from": counts["resumed_from"] if counts["resumed_from"] >= 0 else None,
        "begun_on": begun if (begun := checkpoint.about["begun_on"]) != made.get("machine") else None,
        "diverged": [{"setting": r.setting, "seed": r.seed, "round": r.diverged} for r in stopped],
        "peak_memory_mb": peak_memory_mb(),
        "seconds": round(checkpoint.before + time.monotonic() - started, 3),
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
    work, who, evaluation = LocalWork.from_spec(spec["local"]), spec["participation"], spec["evaluate"]
    participation = Participation(None if who["clients"] == "all" else who["clients"], who["sampling"], who["weights"])
    plan = Plan(experiment.id, spec["rounds"], work, participation, evaluation["every"], evaluation["clients"])

    datasets = load_datasets(inputs.dataset)
    federations = load_federations(datasets, federation_files.load(inputs.federation), seeds_of(shard), dtype, device)
    any_data = next(iter(datasets.values()))
    kind, arguments = parts.model(spec["model"]["name"]), {k: v for k, v in spec["model"].items() if k != "name"}
    model = build(kind, any_data.train.shape, any_data.outputs, torch.Generator(), **arguments)
    task, spare = Task(copy.deepcopy(model).to(device, dtype)), Task(model)

    def start(seed: int, *client: int) -> Params:
        """The initial model of a run, or of one of its clients."""
        initialise(model, streams.torch_generator(experiment.id, seed, "init", *client))
        return Params({name: value.to(device, dtype) for name, value in spare.parameters().items()})

    problems, initial = {}, {}
    for seed, federation in federations.items():
        initial[seed], own = start(seed), functools.cache(functools.partial(start, seed))
        steps = max(work.steps_for(size)[0] for size in federation.train.sizes.tolist())
        problems[seed] = Problem(task, federation, participation.shares(federation), steps, own, plan.rounds)
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
    datasets: Mapping[int, Dataset],
    assignments: Mapping[int, Mapping[str, np.ndarray]],
    seeds: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
) -> dict[int, Federation]:
    """One federation per seed, all on shared tensors: the rows of all seeds' data sets, one after the other."""
    joined: dict[str, tuple[Samples, dict[int, np.ndarray]]] = {}
    for name in SPLITS:
        splits = {seed: split for seed, data in datasets.items() if (split := data.splits().get(name)) is not None}
        if splits:
            joined[name] = _join(datasets, splits, dtype, device)
    federations = {}
    for seed in seeds:
        mine, source = assignments[seed], seed if seed in datasets else -1
        holdings = {}
        for name in (name for name in SPLITS if f"{name}/rows" in mine):
            samples, rows = joined[str(mine[f"{name}/of"])]
            holdings[name] = Holdings(samples, rows[source][mine[f"{name}/rows"]], mine[f"{name}/offsets"])
        groups = tuple(map(str, mine["groups"]))
        federations[seed] = Federation(**holdings, groups=groups, facts=dict(datasets[source].facts))
    return federations


def _join(
    datasets: Mapping[int, Dataset], splits: Mapping[int, Split], dtype: torch.dtype, device: torch.device
) -> tuple[Samples, dict[int, np.ndarray]]:
    """One split of all seeds on the device, and the positions of each seed's rows in it. Text stays one sequence: a
    window is a view of it, identified by its first symbol."""
    lengths = [len(split.x) for split in splits.values()]
    first = dict(zip(splits, np.cumsum([0, *lengths[:-1]]), strict=True))
    seed, any_split = next(iter(splits.items()))
    as_bytes = _kept_as_bytes(datasets[seed], any_split, sum(lengths), dtype)
    scaling = _scaling(datasets[seed], dtype, device) if as_bytes else ()
    pieces = [_features(datasets[seed], split, dtype, device, as_bytes) for seed, split in splits.items()]
    x = torch.cat(pieces) if len(pieces) > 1 else pieces[0]
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


def _kept_as_bytes(data: Dataset, split: Split, rows: int, dtype: torch.dtype) -> bool:
    """Whether the samples are bytes to be scaled that would be LARGE in the run's type."""
    large = rows * math.prod(split.shape) * dtype.itemsize > LARGE
    return data.offset is not None and split.start is None and split.x.dtype == np.uint8 and large


def _scaling(data: Dataset, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.asarray(v)).to(device, dtype) for v in (data.offset, data.factor))


def _features(data: Dataset, split: Split, dtype: torch.dtype, device: torch.device, as_bytes: bool) -> torch.Tensor:
    """(x − offset) · factor in the run's type; symbols of a text, and images kept as bytes, stay integers."""
    x = torch.from_numpy(split.x).to(device)
    if split.start is not None or as_bytes:
        return x
    x = x.to(dtype)
    if data.offset is None:
        return x
    offset, factor = _scaling(data, dtype, device)
    return x.sub_(offset).mul_(factor) if split.x.dtype == np.uint8 else (x - offset) * factor


@contextlib.contextmanager
def freeze_existing_objects() -> Iterator[None]:
    """Keep the garbage collector off existing objects: torch alone has hundreds of thousands, and a round of thousands
    of clients would traverse them repeatedly."""
    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()


def keep_freed_memory() -> None:
    """Make glibc keep large freed blocks: each round allocates the same ones again, and returning them to the kernel
    takes up to a third of a vectorised round."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library: only speed is lost
            c = ctypes.CDLL(None)
            c.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD
            c.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def peak_memory_mb() -> float:
    """The largest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20, 1)
