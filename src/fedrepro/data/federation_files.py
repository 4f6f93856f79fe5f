"""What every splitting scheme returns, its file and its content hash."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedrepro.files import atomic_file, check_own, damaged


@dataclass(frozen=True)
class Assignment:
    """For each split the rows of client 0, 1, …; a split with a single holder is a global set. groups: [clients].

    Rows are those of the data set's split of the same name, or of the one that `of` names: a test set cut out of a
    client's own samples has of = {"test": "train"}.
    """

    rows: Mapping[str, Sequence[np.ndarray]]
    groups: Sequence[str] = field(default_factory=tuple)
    of: Mapping[str, str] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        """Each split as (rows of all clients in turn [n], offsets [clients + 1], the data set's split they are of)."""
        arrays = {"groups": np.array(list(self.groups), dtype=str)}
        for split, clients in self.rows.items():
            arrays[f"{split}/rows"] = np.concatenate([np.asarray(c, dtype=np.int64) for c in clients])
            arrays[f"{split}/offsets"] = np.cumsum([0, *map(len, clients)], dtype=np.int64)
            arrays[f"{split}/of"] = np.array(self.of.get(split, split))
        return arrays


def save(path: Path, assignments: Mapping[int, Assignment]) -> None:
    """One npz file for the federations of several seeds."""
    arrays = {f"{seed}/{k}": v for seed, a in assignments.items() for k, v in a.arrays().items()}
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def load(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Seed → {"train/rows": …, "train/offsets": …, "train/of": …, …, "groups": …}. Damage is an error by name."""
    seeds: dict[int, dict[str, np.ndarray]] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for key in archive.files:
                seed, name = key.split("/", 1)
                seeds.setdefault(int(seed), {})[name] = archive[key]
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError):
        raise damaged(path) from None
    check_own(path, _sha256(seeds))
    return seeds


def content_sha256(assignments: Mapping[int, Assignment]) -> str:
    """Hash of who holds what, independent of the file's format."""
    return _sha256({seed: assignment.arrays() for seed, assignment in assignments.items()})


def _sha256(seeds: Mapping[int, Mapping[str, np.ndarray]]) -> str:
    digest = hashlib.sha256()
    for seed, arrays in sorted(seeds.items()):
        for name, array in sorted(arrays.items()):
            digest.update(f"{seed}/{name}/{array.dtype}/{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
