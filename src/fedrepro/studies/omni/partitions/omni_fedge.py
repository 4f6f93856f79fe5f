"""The nodes of Omni-Fedge (ICASSP 2021, §5): a stratified and a skewed split of one pool, each node with its own test
set.

    printed, a node        training   test
    i.i.d., both                622    778    10 % of the pool of 70,000, over 5 nodes
    non-i.i.d., MNIST           673    842    node 0 of a split of 40 % of the pool
    non-i.i.d., F-MNIST         331    414    node 0 of a split of 20 % of the pool

The paper says "non-uniform sampling"; what is done here is what its authors' code does: training and test images are
pooled, nodes are disjoint and stratified, and in the skewed split each node keeps of each class a fraction ~ U(0, ½).
The test share is 5/9 (778 of 1,400), stratified too.

`samples` and `test_samples` are what is asked for; a pool that is too small is dealt out whole, in the same
proportion, so that what a node gets is to be read off the federation (its json has the sizes).
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.data.federation_files import Assignment
from fedrepro.data.pool import check_clients, class_labels, in_proportion, rows_by_class
from fedrepro.errors import UserError

KEPT = 0.5  # the largest fraction of a class that a node of the skewed split keeps
REDRAWS = 100


def omni_stratified(
    dataset: Dataset, rng: np.random.Generator, *, clients: int = 5, samples: int = 622, test_samples: int = 778
) -> Assignment:
    """Nodes of equal size with equal class counts (to within one)."""
    nodes = _deal(dataset, rng, clients, samples, test_samples, "omni_stratified")
    return _cut(nodes, dataset.train.y, rng, samples, test_samples, "omni_stratified")


def omni_skewed(
    dataset: Dataset, rng: np.random.Generator, *, clients: int = 5, samples: int = 622, test_samples: int = 778
) -> Assignment:
    """samples, test_samples: of a node on average; it is dealt four times as many and keeps a quarter on average.

    The defaults are MNIST's (a node is dealt 5,600 = 40 % of 70,000 / 5); F-MNIST's are 311 and 389.
    """
    nodes = _deal(dataset, rng, clients, samples, test_samples, "omni_skewed", times=2 / KEPT)
    kept = [_thin(rows, dataset.train.y[rows], rng) for rows in nodes]
    return _cut(kept, dataset.train.y, rng, samples, test_samples, "omni_skewed")


def _deal(
    dataset: Dataset,
    rng: np.random.Generator,
    clients: int,
    samples: int,
    test_samples: int,
    scheme: str,
    times: float = 1,
) -> list[np.ndarray]:
    """`times` as many rows for each node as are asked for, or all that there are."""
    labels = class_labels(dataset, scheme)
    if dataset.test is not None:
        raise UserError(f"{scheme}: the data set has a test set of its own; load it pooled")
    check_clients(clients, len(labels), scheme)
    if not samples or not test_samples:
        raise UserError(f"{scheme}: samples and test_samples must be at least 1: {samples} and {test_samples}")
    each = min(round(times * (samples + test_samples)), len(labels) // clients)
    chosen = in_proportion(labels, rng)[: clients * each]
    chosen = chosen[np.argsort(labels[chosen], kind="stable")]
    return [chosen[node::clients] for node in range(clients)]  # in turn, class after class


def _thin(rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fraction ~ U(0, KEPT) of each class; drawn again where that leaves less than two samples."""
    classes = rows_by_class(labels, int(labels.max()) + 1, rng)
    for _ in range(REDRAWS):
        kept = [mine[: int(rng.uniform(0, KEPT) * len(mine))] for mine in classes]
        if sum(map(len, kept)) > 1:
            return rows[np.concatenate(kept)]
    raise UserError(
        f"omni_skewed: a node of {len(rows)} samples kept less than two in {REDRAWS} draws; too small a pool"
    )


def _cut(
    nodes: list[np.ndarray], labels: np.ndarray, rng: np.random.Generator, samples: int, test_samples: int, scheme: str
) -> Assignment:
    train, test = [], []
    for rows in nodes:
        cut = round(len(rows) * samples / (samples + test_samples))
        if not 0 < cut < len(rows):
            raise UserError(f"{scheme}: a node of {len(rows)} samples cannot have both training and test samples")
        order = in_proportion(labels[rows], rng)
        train.append(rows[order[:cut]])
        test.append(rows[order[cut:]])
    return Assignment({"train": train, "test": test}, of={"test": "train"})
