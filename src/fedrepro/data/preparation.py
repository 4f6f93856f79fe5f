"""Data sets and federations as files, each described by a json file of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrepro.core import parts, streams
from fedrepro.data import assignment as federation_files
from fedrepro.data import dataset as data_files
from fedrepro.data.inside import INSIDE
from fedrepro.data.source import Fetch, Source
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
    """Write the data set of each seed (−1: one for all) to `out`; its kind, sizes, hash and real files to the json.

    With mode `real`, `fetch` downloads missing real files.
    """
    parameters = {k: v for k, v in spec.items() if k != "name"}
    datasets = {}
    for seed in seeds:
        source = Source(streams.generator(dataset_id, seed, "data"), mode, tuple(map(Path, folders)), fetch)
        datasets[seed] = parts.dataset(spec["name"]).load(source, **parameters)
    data_files.save(out, datasets)
    first = datasets[seeds[0]]
    about = {
        "name": spec["name"],
        "kind": first.kind,
        "parameters": parameters,
        "samples": {name: len(split) for name, split in first.splits().items()},
        "sha256": sha256(out),
        **({"found": first.found.about()} if first.found else {}),
    }
    write_json(out.with_suffix(".json"), about)


def partition_data(
    federation_id: str, spec: dict[str, Any], seeds: Sequence[int], dataset: Path, out: Path
) -> tuple[dict[int, federation_files.Assignment], data_files.Dataset]:
    """Write each seed's federation to `out`, its sizes and content hash to the json.

    Returns the federations, and the data set of the first seed.
    """
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
    about = {
        "name": spec["name"],
        "parameters": {k: v for k, v in spec.items() if k != "name"},
        "clients": len(sizes),
        "smallest": min(sizes),
        "largest": max(sizes),
        "sha256": federation_files.content_sha256(assignments),
    }
    write_json(out.with_suffix(".json"), about)
    return assignments, datasets[seeds[0] if seeds[0] in datasets else -1]
