"""The contracts of a data set, by the `example` of its entry, of a partition, by its `EXAMPLES`, and of both."""

import importlib
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedrepro.contracts.contract import Contract, hold
from fedrepro.core import parts, streams
from fedrepro.data import assignment as federation_files
from fedrepro.data import dataset as data_files
from fedrepro.data.assignment import Assignment
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.preparation import INSIDE
from fedrepro.errors import UserError
from fedrepro.workflow.train_job import load_federations

Settings = Mapping[str, Any]


def dataset_contracts(name: str) -> Iterator[Contract]:
    """Those of one data set."""
    yield Contract.of("its kind is known and its values are finite", _is_finite, name)
    yield Contract.of("clients are numbered from 0, each in one group", _numbers_clients, name)
    yield Contract.of("the same stream gives the same data, another other data", _is_seeded, name)
    yield Contract.of("the plan knows its size", _has_its_size, name)
    yield Contract("its file holds all of it", partial(_survives_its_file, name))
    yield Contract.of("it can be dealt out at random and by its own clients", _can_be_dealt, name)
    for scheme in ("by_client", "iid"):
        yield Contract(f"a job reads each client's own rows ({scheme})", partial(_is_read_by_jobs, name, scheme))


def partition_contracts(name: str) -> Iterator[Contract]:
    """Those of one partition."""
    yield Contract.of("it has examples of data sets that it can use", _has_examples, name)


def pair_contracts(dataset: str, partition: str) -> Iterator[Contract]:
    """Those of a data set and a partition."""
    for i, setting in enumerate(settings_of(partition)):
        says = f"{partition} {i} deals out {dataset} or gives the reason"
        yield Contract.of(says, _deals_or_gives_the_reason, dataset, partition, setting)


def examples_of(partition: str) -> Mapping[str, Settings]:
    """Data set → the settings that must work with it."""
    found: Mapping[str, Settings] = importlib.import_module(parts.module_of("partitions", partition)).EXAMPLES
    return found


def settings_of(partition: str) -> list[Settings]:
    """Every setting of a partition's examples once."""
    return list({repr(setting): setting for setting in examples_of(partition).values()}.values())


def load(name: str, seed: int = 0) -> Dataset:
    """The data set's example, simulated or from its stand-in."""
    entry = parts.dataset(name)
    found: Dataset = entry.load(Source(streams.generator(name, seed, "data"), mode="standin"), **entry.example)
    return found


@cache
def made(name: str, seed: int = 0) -> Dataset:
    return load(name, seed)


def deal(name: str, partition: str, seed: int = 0, **setting: Any) -> Assignment:
    rng = streams.generator(name, seed, "partition")
    found: Assignment = parts.partition(partition)(made(name, seed), rng, **setting)
    return found


# --- data sets --------------------------------------------------------------------------------------------------------


def _is_finite(name: str) -> None:
    data = made(name)
    hold(data.kind in ("standin", "synthetic") or data.found is not None, f"kind '{data.kind}' without files")
    hold(data.outputs >= 1, f"{data.outputs} outputs")
    for part, split in data.splits().items():
        hold(split.samples().shape == (len(split), *split.shape), f"{part}: samples of shape {split.samples().shape}")
        hold(len(split) > 0, f"{part}: is empty")
        hold(np.isfinite(split.x).all() and np.isfinite(split.y).all(), f"{part}: a value is not finite")
        hold(split.shape == data.train.shape, f"{part}: samples of another shape than in train")
        if np.issubdtype(split.y.dtype, np.integer):
            classes = set(np.unique(split.y))
            hold(split.y.ndim == 1 and classes <= set(range(data.outputs)), f"{part}: classes {sorted(classes)[:9]}")
        else:
            hold(split.y.shape in ((len(split),), (len(split), data.outputs)), f"{part}: y of shape {split.y.shape}")
        if data.offset is not None and data.factor is not None:
            shape = np.broadcast_shapes(data.offset.shape, data.factor.shape, split.shape)
            hold(shape == split.shape, f"{part}: offset and factor do not fit")
            hold(np.isfinite((split.x[:9] - data.offset) * data.factor).all(), f"{part}: scaled values are not finite")


def _numbers_clients(name: str) -> None:
    train = made(name).train
    if train.client is None:
        return
    numbers = np.unique(train.client)
    hold(np.array_equal(numbers, np.arange(len(numbers))), f"clients {numbers[:9]}")
    for part, split in made(name).splits().items():
        hold(split.client is None or set(np.unique(split.client)) <= set(numbers), f"{part}: has other clients")
    if train.group is not None:
        pairs = np.unique(np.stack([train.client, train.group]), axis=1).T
        hold(len(pairs) == len(numbers), "a client is in two groups")


def _is_seeded(name: str) -> None:
    """No global generator is used."""
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state(), random.getstate()  # type: ignore[index]  # noqa: NPY002
    again = load(name, 0)
    hold(np.array_equal(np.random.get_state()[1], before[0]), "numpy's global generator is used")  # type: ignore[index]  # noqa: NPY002
    hold(torch.equal(torch.random.get_rng_state(), before[1]), "torch's global generator is used")
    hold(random.getstate() == before[2], "Python's global generator is used")
    first, other = made(name, 0), made(name, 1)
    hold(first.splits().keys() == again.splits().keys(), "a second call gives other splits")
    hold(all(_same(first.splits()[k], again.splits()[k]) for k in first.splits()), "a second call gives other data")
    hold(first.kind == "real" or not _same(first.train, other.train), "another stream gives the same data")


def _same(a: Split, b: Split) -> bool:
    mine, theirs = ({k: np.asarray(v) for k, v in vars(split).items() if v is not None} for split in (a, b))
    return same_arrays(mine, theirs)


def same_arrays(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


def _has_its_size(name: str) -> None:
    entry, data = parts.dataset(name), made(name)
    clients, samples = entry.size(**entry.example)
    if clients is not None:
        own = len(np.unique(data.train.client)) if data.train.client is not None else 0
        hold(own == clients, f"{own} clients, planned {clients}")
    hold(abs(samples - len(data.train)) <= 0.25 * len(data.train), f"{len(data.train)} samples, planned {samples}")


def _survives_its_file(name: str, folder: Path) -> None:
    data = made(name)
    data_files.save(folder / "data.npz", {0: data})
    loaded = data_files.load(folder / "data.npz")[0]
    hold((loaded.kind, loaded.outputs) == (data.kind, data.outputs), "kind or outputs differ")
    hold(data.splits().keys() == loaded.splits().keys(), "splits differ")
    hold(all(_same(split, loaded.splits()[k]) for k, split in data.splits().items()), "samples differ")
    hold(same_arrays({k: np.asarray(v) for k, v in data.facts.items()}, dict(loaded.facts)), "facts differ")
    for known in ("offset", "factor"):
        hold(np.array_equal(getattr(data, known), getattr(loaded, known)), f"{known} differs")


def _can_be_dealt(name: str) -> None:
    """No sample is left over; `by_client` refuses exactly the data sets without clients."""
    data = made(name)
    dealt = [deal(name, "iid", clients=3)]
    try:
        dealt.append(deal(name, "by_client"))
    except UserError as error:
        hold(data.train.client is None and str(error).startswith("by_client: this data set does not say"), str(error))
    else:
        hold(data.train.client is not None, "by_client deals out data without clients")
    for found in dealt:
        for split, clients in found.rows.items():
            held = sum(map(len, clients))
            hold(held == len(data.splits()[split]), f"{split}: {held} of {len(data.splits()[split])} samples are dealt")


def _is_read_by_jobs(name: str, scheme: str, folder: Path) -> None:
    """Through the files, with the data sets of all seeds stacked in memory, and a cut inside each client."""
    datasets = {seed: made(name, seed) for seed in (0, 1)}
    if scheme == "by_client" and datasets[0].train.client is None:
        return
    assignments = {}
    for seed in datasets:
        rng = streams.generator(name, seed, "partition")
        setting = {"clients": 3} if scheme == "iid" else {}
        assignments[seed] = INSIDE["shuffled"](deal(name, scheme, seed, **setting), rng, train=0.5, validation=0.5)
    data_files.save(folder / "data.npz", datasets)
    federation_files.save(folder / "federation.npz", assignments)
    federations = load_federations(
        data_files.load(folder / "data.npz"),
        federation_files.load(folder / "federation.npz"),
        [0, 1],
        torch.float64,
        torch.device("cpu"),
    )
    for seed, federation in federations.items():
        hold(federation.train.samples is federations[0].train.samples, "the samples are copied per seed")
        for part in ("train", "validation"):
            for k in (0, len(federation) - 1):
                mine = np.asarray(assignments[seed].rows[part][k])
                batch = getattr(federation, part).full_batch(k)
                given = np.array_equal(batch.x.numpy(), _given_to_a_model(datasets[seed], mine))
                hold(given, f"{part}: client {k} of seed {seed} gets other inputs")
                labels = np.array_equal(batch.y.numpy(), datasets[seed].train.y[mine])
                hold(labels, f"{part}: client {k} of seed {seed} gets other targets")


def _given_to_a_model(data: Dataset, rows: np.ndarray) -> np.ndarray:
    x = data.train.samples(rows)
    if data.train.start is not None:
        return x
    x = x.astype(np.float64)
    return x if data.offset is None or data.factor is None else (x - data.offset) * data.factor


# --- partitions and pairs ---------------------------------------------------------------------------------------------


def _has_examples(name: str) -> None:
    usable = parts.usable_by(parts.module_of("partitions", name).split(".")[2], "datasets")
    hold(examples_of(name), "EXAMPLES is empty")
    others = set(examples_of(name)) - set(usable)
    hold(not others, f"EXAMPLES names data sets that are neither shared nor of its study: {', '.join(sorted(others))}")


def _deals_or_gives_the_reason(dataset: str, partition: str, setting: Settings) -> None:
    try:
        found = deal(dataset, partition, **setting)
    except UserError as error:
        reason = str(error)
        hold(setting != examples_of(partition).get(dataset), f"its own example: {reason}")
        hold(reason.startswith(partition) and "\n" not in reason, f"the reason is not one line of its name: {reason}")
        return
    check(made(dataset), found)
    hashes = {federation_files.content_sha256({0: f}) for f in (found, deal(dataset, partition, **setting))}
    hold(len(hashes) == 1, "a second call deals otherwise")
    for cut in INSIDE.values():
        _check_inside(made(dataset), found, cut)


def check(data: Dataset, found: Assignment) -> None:
    """No row is held twice, neither by two clients nor in two splits. Every client has training samples."""
    hold(all(len(rows) for rows in found.rows["train"]), "a client has no training samples")
    hold(len(found.groups) in (0, len(found.rows["train"])), "groups of some clients only")
    hold(set(found.of) <= set(found.rows), "`of` names a split without rows")
    for source, split in data.splits().items():
        holders = [rows for name, rows in found.rows.items() if found.of.get(name, name) == source]
        held = [np.asarray(mine, dtype=np.int64) for clients in holders for mine in clients]
        rows = np.concatenate([np.empty(0, np.int64), *held])
        hold(len(np.unique(rows)) == len(rows), f"{source}: a row is held twice")
        hold(len(rows) == 0 or 0 <= rows.min() <= rows.max() < len(split), f"{source}: a row does not exist")
    hold({found.of.get(name, name) for name in found.rows} <= set(data.splits()), "a split does not exist")
    hold(all(len(rows) in (1, len(found.rows["train"])) for rows in found.rows.values()), "holders of a split")


def _check_inside(data: Dataset, dealt: Assignment, cut: Callable[..., Assignment]) -> None:
    """A cut for validation (and for testing, if there is no test set yet) loses no row and shares none."""
    shares = {"validation": 0.25} if "test" in dealt.rows else {"validation": 0.25, "test": 0.25}
    if "validation" in dealt.rows or min(map(len, dealt.rows["train"])) < 2:
        return
    found = cut(dealt, streams.generator("inside", 0, "partition"), train=1 - sum(shares.values()), **shares)
    check(data, found)
    for client, mine in enumerate(dealt.rows["train"]):
        kept = sorted(np.concatenate([found.rows[p][client] for p in ("train", *shares)]))
        hold(kept == sorted(mine), f"a cut inside client {client} loses rows")
