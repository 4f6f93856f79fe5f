"""Where a training job keeps its checkpoint, and what the header says of the job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedrepro.core.checkpoint_file import DamagedCheckpoint, read_header
from fedrepro.core.experiment import Experiment
from fedrepro.evidence.power import told
from fedrepro.files import sha256_of

#: keys of the header that a checkpoint's name is the hash of
IDENTITY = ("config_sha256", "shard", "code_sha256", "data", "federation_sha256")


Json = Mapping[str, Any]


def identity(
    experiment: Experiment, algorithm: str, shard: str, code: str, dataset: Json, partition: Json
) -> dict[str, Any]:
    """The header's entries on a job; `dataset` and `partition` are the json files of its data."""
    return {
        "job": f"{experiment.id}/{algorithm}/{shard}",
        "scale": experiment.scale,
        "rounds": experiment.spec["rounds"],
        "shard": shard,
        "config_sha256": experiment.job_sha256(algorithm),
        "code_sha256": code,
        "data": {key: dataset[key] for key in ("name", "kind", "sha256")},
        "federation_sha256": partition["sha256"],
    }


def checkpoint_name(header: Mapping[str, Any]) -> str:
    """The file of the job with this identity."""
    return f"{sha256_of([header[key] for key in IDENTITY])[:32]}.pt"


def unfinished(results: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Job → (file, header) of its newest checkpoint in a results folder. Damaged files are left out."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in sorted((results / "checkpoints").glob("*.pt"), key=_changed):
        try:
            header = read_header(path)
        except (DamagedCheckpoint, OSError):
            continue
        if "job" in header:
            found[header["job"]] = path, header
    return found


def progress(path: Path, header: Mapping[str, Any], now: float) -> str:
    """`40 of 100 rounds · 52 s per round · about 52 min left · last checkpoint 20 s ago`."""
    done, rounds, spent = header["round"], header["rounds"], header["seconds"]
    parts = [f"{done} of {rounds} rounds"]
    if done:
        parts += [f"{spent / done:.3g} s per round", f"{told(spent / done * (rounds - done))} left"]
    return " · ".join([*parts, f"last checkpoint {told(max(0.0, now - _changed(path))).removeprefix('about ')} ago"])


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # its job ended meanwhile
        return 0.0
