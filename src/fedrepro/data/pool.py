"""What several schemes need: labels that are classes, splits that stay global, samples in the classes' proportions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError


def class_labels(dataset: Dataset, scheme: str) -> np.ndarray:
    """The training labels [n], 0 … outputs − 1; a UserError where the targets are not classes."""
    y = dataset.train.y
    if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
        raise UserError(f"{scheme}: needs a class for every sample; the targets of this data set are not integers")
    if len(y) and not 0 <= y.min() <= y.max() < dataset.outputs:
        raise UserError(f"{scheme}: classes must be 0 … {dataset.outputs - 1}: labels are {y.min()} … {y.max()}")
    return y


def require_all_classes(sizes: np.ndarray, scheme: str) -> None:
    """sizes [classes]: a UserError for the first class that has no training sample."""
    if not sizes.all():
        raise UserError(f"{scheme}: class {np.argmin(sizes)} has no training samples")


def check_clients(clients: int, samples: int, scheme: str) -> None:
    if clients < 1:
        raise UserError(f"{scheme}: clients = {clients}: must be at least 1")
    if clients > samples:
        raise UserError(f"{scheme}: clients = {clients}: there are only {samples} training samples")


def others(dataset: Dataset) -> dict[str, list[np.ndarray]]:
    """The data set's own validation and test sets: global, held by nobody in particular."""
    return {name: [np.arange(len(split))] for name, split in dataset.splits().items() if name != "train"}


def rows_by_class(labels: np.ndarray, classes: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The rows of class 0, 1, …, each in random order."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    return np.split(order, np.cumsum(np.bincount(labels, minlength=classes))[:-1])


def rows_by_owner(rows: np.ndarray, owner: np.ndarray, clients: int) -> list[np.ndarray]:
    """The rows of client 0, 1, …, in the order in which they come; owner [n] is each row's client."""
    narrow = owner.astype(np.min_scalar_type(max(clients - 1, 0)))  # small integers are sorted by radix: 10 × faster
    order = np.argsort(narrow, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(owner, minlength=clients))[:-1])


def in_proportion(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random order of which every beginning has the classes in about the proportions of the whole.

    Sample r of the n_c of a class, in random order, comes at (r + ½)/n_c of the way.
    """
    chance = rng.random(len(labels))
    by_class = np.lexsort((chance, labels))
    sizes = np.unique(labels, return_counts=True)[1]
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    way = (rank + 0.5) / np.repeat(sizes, sizes)
    return by_class[np.lexsort((rng.random(len(labels)), way))]


def apportion(total: int, weights: Sequence[float]) -> np.ndarray:
    """Integers that sum to `total`, in proportion to the weights: floors, then one more for the largest remainders."""
    exact = total * np.asarray(weights, dtype=float) / np.sum(weights)
    parts = np.floor(exact + 1e-9).astype(int)
    more = np.argsort(parts - exact, kind="stable")[: total - parts.sum()]
    parts[more] += 1
    return parts
