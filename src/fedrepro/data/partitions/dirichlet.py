"""Class shares drawn from a Dirichlet law, as in NIID-Bench (arXiv 2102.02079); DIR in arXiv 2402.12945, §V.

For each class in turn, shares of its samples are drawn from Dir(α·1) over the clients; the share of a client that
already holds ≥ N/L samples is set to 0 and the others are scaled up to sum to 1. Everything is redrawn until the
smallest client has `minimum` samples. Here the shares are drawn over the open clients only, with the same law: a
Dirichlet draw without some coordinates, scaled to sum to 1, is a Dirichlet draw over the rest.
"""

import math

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients, class_labels, others, rows_by_class, rows_by_owner
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

REDRAWS = 2_000
_EXAMPLE = {"clients": 3, "alpha": 0.5, "minimum": 2}
EXAMPLES = {name: _EXAMPLE for name in ("cifar10", "cifar100", "fashion_mnist", "stl10")}


def dirichlet(
    dataset: Dataset, rng: np.random.Generator, *, clients: int, alpha: float, minimum: int = 10
) -> Assignment:
    """All training samples, each at one client. The data set's own test set is global."""
    labels = class_labels(dataset, "dirichlet")
    classes = rows_by_class(labels, dataset.outputs, rng)
    return Assignment({"train": deal(classes, rng, clients, alpha, minimum, "dirichlet"), **others(dataset)})


def deal(
    classes: list[np.ndarray], rng: np.random.Generator, clients: int, alpha: float, minimum: int, scheme: str
) -> list[np.ndarray]:
    """The rows of every client, at least one each; classes: the rows of each class, in random order."""
    sizes = np.array([len(rows) for rows in classes])
    check_clients(clients, int(sizes.sum()), scheme)
    if not 0 < alpha < math.inf:
        raise UserError(f"{scheme}: alpha = {alpha}: must be above 0 and finite")
    minimum = max(1, minimum)
    if clients * minimum > sizes.sum():
        raise UserError(f"{scheme}: minimum = {minimum}: {clients} clients share only {sizes.sum()} samples")
    best = 0
    for _ in range(REDRAWS):
        counts = _draw(sizes, rng, clients, alpha)
        best = max(best, int(counts.sum(axis=0).min()))
        if best >= minimum:
            owner = np.concatenate([np.repeat(np.arange(clients), held) for held in counts])
            return rows_by_owner(np.concatenate(classes), owner, clients)
    tried = f"not reached in {REDRAWS} draws with alpha = {alpha} and {clients} clients"
    raise UserError(f"{scheme}: minimum = {minimum}: {tried}; the best draw left the smallest client {best}")


def _draw(sizes: np.ndarray, rng: np.random.Generator, clients: int, alpha: float) -> np.ndarray:
    """Number of samples [classes, clients]."""
    counts = np.zeros((len(sizes), clients), dtype=int)
    held = np.zeros(clients, dtype=int)
    for size, row in zip(sizes, counts, strict=True):
        open_to = np.flatnonzero(held < sizes.sum() / clients)  # empty only if nothing is left to deal
        if size:
            shares = rng.dirichlet(np.full(len(open_to), alpha))
            ends = (np.cumsum(shares)[:-1] * size).astype(int)
            row[open_to] = np.diff(ends, prepend=0, append=size)
            held += row
    return counts
