"""Shared by the partitions: the assignment of rows to clients, its npz file and content hash, ways to deal rows out."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.errors import Damaged, UserError
from fedrepro.files import atomic_file, check_own


@dataclass(frozen=True)
class Assignment:
    """For each split the rows of client 0, 1, …; a split with a single holder is global. Rows index the data set's
    split of the same name, or the one that `of` names: {"test": "train"} for a test set cut out of the train set."""

    rows: Mapping[str, Sequence[np.ndarray]]
    groups: Sequence[str] = ()  # [clients]
    of: Mapping[str, str] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        """Each split as rows [n] of all clients in turn, offsets [clients + 1] and the data set's split they index."""
        arrays = {"groups": np.array(list(self.groups), dtype=str)}
        for split, clients in self.rows.items():
            arrays[f"{split}/rows"] = np.concatenate([np.asarray(c, dtype=np.int64) for c in clients])
            arrays[f"{split}/offsets"] = np.cumsum([0, *map(len, clients)], dtype=np.int64)
            arrays[f"{split}/of"] = np.array(self.of.get(split, split))
        return arrays


def save(path: Path, assignments: Mapping[int, Assignment]) -> None:
    arrays = {f"{seed}/{k}": v for seed, a in assignments.items() for k, v in a.arrays().items()}
    with atomic_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the arrays for its option allow_pickle


def load(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Seed → {"train/rows": …, "train/offsets": …, "train/of": …, …, "groups": …}. Damage is named."""
    seeds: dict[int, dict[str, np.ndarray]] = {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            for key in archive.files:
                seed, name = key.split("/", 1)
                seeds.setdefault(int(seed), {})[name] = archive[key]
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError):
        raise Damaged(path) from None
    check_own(path, content_sha256(seeds))
    return seeds


def content_sha256(seeds: Mapping[int, Assignment | Mapping[str, np.ndarray]]) -> str:
    """Hash of the rows that each client holds, independent of the file format."""
    digest = hashlib.sha256()
    for seed in sorted(seeds):
        arrays = held.arrays() if isinstance(held := seeds[seed], Assignment) else held
        for name, array in sorted(arrays.items()):
            digest.update(f"{seed}/{name}/{array.dtype}/{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def class_labels(dataset: Dataset, scheme: str) -> np.ndarray:
    """The training labels [n], 0 … outputs − 1; UserError where the targets are not classes."""
    y = dataset.train.y
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise UserError(f"{scheme}: needs a class for every sample; the targets of this data set are not integers")
    if len(y) and not 0 <= y.min() <= y.max() < dataset.outputs:
        raise UserError(f"{scheme}: classes must be 0 … {dataset.outputs - 1}: labels are {y.min()} … {y.max()}")
    return y


def require_all_classes(sizes: np.ndarray, scheme: str) -> None:
    """UserError for the first class without training samples; sizes [classes]."""
    if not sizes.all():
        raise UserError(f"{scheme}: class {np.argmin(sizes)} has no training samples")


def check_clients(clients: int, samples: int, scheme: str) -> None:
    """UserError unless every client can have a sample."""
    if not 1 <= clients <= samples:
        why = "must be at least 1" if clients < 1 else f"there are only {samples} training samples"
        raise UserError(f"{scheme}: clients = {clients}: {why}")


def others(dataset: Dataset) -> dict[str, list[np.ndarray]]:
    """The data set's own validation and test sets, as global sets."""
    return {name: [np.arange(len(split))] for name, split in dataset.splits().items() if name != "train"}


def rows_by_class(labels: np.ndarray, classes: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of class 0, 1, …, each in random order."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    return np.split(order, np.cumsum(np.bincount(labels, minlength=classes))[:-1])


def rows_by_owner(rows: np.ndarray, owner: np.ndarray, clients: int) -> list[np.ndarray]:
    """The rows of client 0, 1, …, each in the given order; owner [n] is each row's client."""
    narrow = owner.astype(np.min_scalar_type(max(clients - 1, 0)))  # small integers are sorted by radix: 10 × faster
    order = np.argsort(narrow, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def in_proportion(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random order; every prefix has about the class shares of the whole: sample r of class c at (r + ½)/n_c."""
    by_class = np.lexsort((rng.random(len(labels)), labels))
    sizes = np.unique(labels, return_counts=True)[1]
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    way = (rank + 0.5) / np.repeat(sizes, sizes)
    return by_class[np.lexsort((rng.random(len(labels)), way))]


def apportion(total: int, weights: Sequence[float]) -> np.ndarray:
    """Integers that sum to `total`, in proportion to the weights: floors, then one more for the largest remainders."""
    exact = total * np.asarray(weights, dtype=float) / np.sum(weights)
    parts = np.floor(exact + 1e-9).astype(int)
    parts[np.argsort(parts - exact, kind="stable")[: total - parts.sum()]] += 1
    return parts
