"""Data sets and federations as files, each described by a json file of the same name."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.core import parts, streams
from fedrepro.data import assignment as federation_files
from fedrepro.data import dataset as data_files
from fedrepro.data.assignment import Assignment
from fedrepro.data.catalogue import Fetch, Source
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.files import sha256, write_json


def prepare_data(
    dataset_id: str,
    spec: dict[str, Any],
    seeds: Sequence[int],
    mode: str,
    folders: Sequence[Path | str],
    out: Path,
    fetch: Fetch | None = None,
) -> None:
    """Write the data set of each seed (−1: one for all) to `out`; its kind, sizes, hash and real files to the json."""
    parameters = {k: v for k, v in spec.items() if k != "name"}
    datasets = {}
    for seed in seeds:
        source = Source(streams.generator(dataset_id, seed, "data"), mode, tuple(map(Path, folders)), fetch)
        datasets[seed] = parts.dataset(spec["name"]).load(source, **parameters)
    data_files.save(out, datasets)
    first = datasets[seeds[0]]
    about = {"name": spec["name"], "kind": first.kind, "parameters": parameters, "sha256": sha256(out)}
    about["samples"] = {name: len(split) for name, split in first.splits().items()}
    write_json(out.with_suffix(".json"), about | ({"found": first.found.about()} if first.found else {}))


def partition_data(
    federation_id: str, spec: dict[str, Any], seeds: Sequence[int], dataset: Path, out: Path
) -> tuple[dict[int, Assignment], Dataset]:
    """Write each seed's federation to `out`, sizes and hash to the json; returns also the first seed's data set."""
    datasets = data_files.load(dataset)
    parameters = {k: v for k, v in spec.items() if k not in ("name", "inside")}
    inside = dict(spec.get("inside", {}))
    cut = INSIDE[inside.pop("name")] if inside else None
    assignments = {}
    for seed in seeds:
        rng = streams.generator(federation_id, seed, "partition")
        data = datasets[seed if seed in datasets else -1]
        assignments[seed] = parts.partition(spec["name"])(data, rng, **parameters)
        if cut:
            rng = streams.generator(federation_id, seed, "partition", "inside")
            assignments[seed] = cut(assignments[seed], rng, **inside)
    federation_files.save(out, assignments)
    sizes = list(map(len, assignments[seeds[0]].rows["train"]))
    about = {"name": spec["name"], "parameters": {k: v for k, v in spec.items() if k != "name"}}
    about |= {"clients": len(sizes), "smallest": min(sizes), "largest": max(sizes)}
    write_json(out.with_suffix(".json"), about | {"sha256": federation_files.content_sha256(assignments)})
    return assignments, datasets[seeds[0] if seeds[0] in datasets else -1]


# --- each client's own samples, cut after a partition has dealt them out ----------------------------------------------
# In an experiment: `partition: {name: k_classes, …, inside: {name: shuffled, train: 0.7, validation: 0.1, test: 0.2}}`.


def shuffled(
    assignment: Assignment, rng: np.random.Generator, *, train: float, validation: float = 0.0, test: float = 0.0
) -> Assignment:
    """A random cut of every client's samples (thesis §2.5: 70/10/20 on each device)."""
    return _cut(assignment, rng.permutation, train=train, validation=validation, test=test)


def ordered(
    assignment: Assignment, rng: np.random.Generator, *, train: float, validation: float = 0.0, test: float = 0.0
) -> Assignment:
    """The same in the order of the data set (thesis §3.5: the first 60 % of an engine's life, then the rest)."""
    return _cut(assignment, np.sort, train=train, validation=validation, test=test)


def dealt(
    assignment: Assignment, rng: np.random.Generator, *, train: float, validation: float = 0.0, test: float = 0.0
) -> Assignment:
    """The same in the order in which the partition dealt them: after `k_classes`, class by class, so that the last part
    is the tail of a device's sorted images."""
    return _cut(assignment, lambda mine: mine, train=train, validation=validation, test=test)


INSIDE: dict[str, Callable[..., Assignment]] = {"shuffled": shuffled, "ordered": ordered, "dealt": dealt}


def _cut(assignment: Assignment, arrange: Callable[[np.ndarray], np.ndarray], **fractions: float) -> Assignment:
    if not (fractions["train"] > 0 <= min(fractions.values()) and abs(sum(fractions.values()) - 1) <= 1e-9):
        given = ", ".join(f"{name} = {fraction}" for name, fraction in fractions.items())
        raise UserError(f"inside: train must be above 0, no part negative, and their sum 1: {given}")
    wanted = {name: fraction for name, fraction in fractions.items() if fraction}
    taken = sorted((set(wanted) & set(assignment.rows)) - {"train"})
    if taken:
        raise UserError(f"inside: the data set has a {' and a '.join(taken)} set of its own; load it pooled")
    rows: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    ends = np.cumsum(list(wanted.values()))[:-1]
    for client, mine in enumerate(assignment.rows["train"]):
        cuts = np.floor(ends * len(mine) + 0.5 + 1e-9).astype(int)  # halves up, not to the even neighbour
        for name, part in zip(wanted, np.split(arrange(mine), cuts), strict=True):
            rows[name].append(part)
        if not len(rows["train"][-1]):
            raise UserError(f"inside: client {client} has {len(mine)} samples, too few to leave one for training")
    kept = {name: held for name, held in assignment.rows.items() if name not in wanted}
    cut_out = {name: assignment.of.get("train", "train") for name in wanted if name != "train"}
    return Assignment({**rows, **kept}, assignment.groups, {**assignment.of, **cut_out})
