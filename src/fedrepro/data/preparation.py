"""Data sets and federations as files, with what identifies them beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedrepro.core import parts, streams
from fedrepro.data import dataset as data_files
from fedrepro.data import federation_files
from fedrepro.data.dataset import Source
from fedrepro.data.inside import INSIDE
from fedrepro.files import sha256, write_json


def prepare_data(
    dataset_id: str,
    spec: dict[str, Any],
    seeds: Sequence[int],
    mode: str,
    folders: Sequence[Path],
    out: Path,
    fetch: data_files.Fetch | None = None,
) -> None:
    """The data set of each seed (−1: one for all) in `out`, and its name, kind, size, hash and real files in
    `out`.json. With mode `real`, `fetch` gets real files that are missing."""
    parameters = {k: v for k, v in spec.items() if k != "name"}
    datasets = {}
    for seed in seeds:
        rng = streams.generator(dataset_id, seed, "data")
        source = Source(rng, mode, tuple(map(Path, folders)), fetch)
        datasets[seed] = parts.dataset(spec["name"]).load(source, **parameters)
    data_files.save(out, datasets)
    first = datasets[seeds[0]]
    write_json(
        out.with_suffix(".json"),
        {
            "name": spec["name"],
            "kind": first.kind,
            "parameters": parameters,
            "samples": {name: len(split) for name, split in first.splits().items()},
            "sha256": sha256(out),
            **({"found": first.found.about()} if first.found else {}),
        },
    )


def partition_data(
    federation_id: str, spec: dict[str, Any], seeds: Sequence[int], dataset: Path, out: Path
) -> tuple[dict[int, federation_files.Assignment], data_files.Dataset]:
    """Each seed's federation in `out`, and its sizes and content hash in `out`.json. Returns them with the first
    seed's data set."""
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
            assignments[seed] = cut(
                assignments[seed], streams.generator(federation_id, seed, "partition", "inside"), **inside
            )
    federation_files.save(out, assignments)
    sizes = list(map(len, assignments[seeds[0]].rows["train"]))
    write_json(
        out.with_suffix(".json"),
        {
            "name": spec["name"],
            "parameters": {k: v for k, v in spec.items() if k != "name"},
            "clients": len(sizes),
            "smallest": min(sizes),
            "largest": max(sizes),
            "sha256": federation_files.content_sha256(assignments),
        },
    )
    return assignments, datasets[seeds[0] if seeds[0] in datasets else -1]
