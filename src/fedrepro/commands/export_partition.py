"""`fedrepro export-partition STUDY/EXPERIMENT --to flwr|json`: who holds which sample, for other suites.

Data and partition are made as the workflow makes them: the same split, byte for byte. `json` is one file with, per seed
and split, the rows of each client and the data set's hash. `flwr` also writes the samples, as a parquet file per split
whose column `partition_id` flwr-datasets' NaturalIdPartitioner reads; a row keeps its place in the data set as `row`.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.commands.command import CONFIG, Command, shown
from fedrepro.core.experiment import SCALES, Experiment, load_experiment
from fedrepro.errors import UserError
from fedrepro.files import read_json, sha256, write_atomically, write_json

if TYPE_CHECKING:
    import numpy as np

FORMATS = ("flwr", "json")
GLOBAL = -1  # partition_id of the samples of a split that no client holds for itself


def export_partition(given: Namespace) -> Iterator[str]:
    experiment = load_experiment(CONFIG, given.name, given.scale)
    if not 0 <= given.seed < experiment.spec["seeds"]:
        raise UserError(f"--seed {given.seed}: {given.name} has seeds 0 to {experiment.spec['seeds'] - 1}")
    folder = given.out or Path(f"{given.name.replace('/', '-')}-{given.scale}-seed{given.seed}")
    with tempfile.TemporaryDirectory() as work:
        about, datasets, held = made(experiment, given.seed, given.data, given.data_dir, Path(work))
    write_json(folder / "partition.json", about)
    yield f"{shown(folder / 'partition.json')}: {about['clients']} clients, sha256 {about['federation_sha256']}"
    if given.to == "flwr":
        for split in about["splits"]:
            path = folder / f"{split}.parquet"
            write_atomically(path, _table(datasets, held, split).to_parquet(None, index=False))
            yield f"{shown(path)}: {sum(map(len, about['splits'][split]['rows']))} samples, sha256 {sha256(path)}"


def made(
    experiment: Experiment, seed: int, mode: str, data_dir: str | None, work: Path
) -> tuple[dict[str, Any], Any, dict[str, np.ndarray]]:
    """(description, data set, arrays of who holds what) of one seed, as a job of the workflow makes them: all seeds of
    a shard are made together, each from its own stream."""
    from fedrepro.core import parts
    from fedrepro.core.streams import seeds_of
    from fedrepro.data import assignment, dataset
    from fedrepro.data.catalogue import data_folders
    from fedrepro.data.preparation import partition_data, prepare_data

    spec, shard = experiment.spec, next(s for s in experiment.shards() if seed in seeds_of(s))
    seeded = parts.dataset(spec["dataset"]["name"]).seeded
    seeds, (data, federation) = seeds_of(shard), (work / "data.npz", work / "federation.npz")
    prepare_data(experiment.dataset_id, spec["dataset"], seeds if seeded else [-1], mode, data_folders(data_dir), data)
    partition_data(experiment.federation_id, spec["partition"], seeds, data, federation)
    held, known = assignment.load(federation)[seed], read_json(data.with_suffix(".json"))
    splits = {name.removesuffix("/rows"): name for name in held if name.endswith("/rows")}
    about = {
        "experiment": experiment.id,
        "scale": experiment.scale,
        "seed": seed,
        "dataset": {"id": experiment.dataset_id, **known},
        "partition": {"id": experiment.federation_id, **spec["partition"]},
        "shard": {"seeds": seeds, "sha256": read_json(federation.with_suffix(".json"))["sha256"]},
        "federation_sha256": assignment.content_sha256({seed: held}),
        "clients": len(held["train/offsets"]) - 1,
        "groups": held["groups"].tolist(),
        "splits": {s: {"of": str(held[f"{s}/of"]), "rows": _rows(held, s)} for s in splits},
    }
    return about, dataset.load(data)[seed if seeded else -1], held


def _rows(held: dict[str, np.ndarray], split: str) -> list[list[int]]:
    """The rows of client 0, 1, …; one list for a split that is global."""
    rows, ends = (held[f"{split}/{part}"].tolist() for part in ("rows", "offsets"))
    return [rows[first:end] for first, end in pairwise(ends)]


def _table(data: Any, held: dict[str, np.ndarray], split: str) -> Any:
    """The samples of a split in the order of the clients: partition_id, row, x (flattened) and y."""
    import numpy as np
    import pandas as pd

    rows, clients = held[f"{split}/rows"], _rows(held, split)
    source = data.splits()[str(held[f"{split}/of"])]
    alone = len(clients) == 1 and len(held["train/offsets"]) > 2
    owner = np.full(len(rows), GLOBAL) if alone else np.repeat(np.arange(len(clients)), list(map(len, clients)))
    x = source.samples(rows).reshape(len(rows), -1)
    return pd.DataFrame({"partition_id": owner, "row": rows, "x": list(x), "y": list(source.y[rows])})


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="STUDY/EXPERIMENT")
    parser.add_argument("--to", choices=FORMATS, default="json", help="json: rows; flwr: samples too; default: json")
    parser.add_argument("--scale", choices=SCALES, default="paper", help="default: paper")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--data", choices=("auto", "real", "standin"), default="auto", help="default: auto")
    parser.add_argument("--data-dir", help="folder of real data")
    parser.add_argument("--out", type=Path, help="folder to write; default: named by experiment, scale and seed")


COMMAND = Command(help="write who holds which sample, for other suites", arguments=arguments, run=export_partition)
