"""Nodes of Omni-Fedge (ICASSP 2021, §5) with equal class counts: dealt from one pool, each with its own test set.

    printed, per node      training   test
    i.i.d., both                622    778    10 % of the pool of 70,000, over 5 nodes
    non-i.i.d., MNIST           673    842    node 0 of a split of 40 % of the pool
    non-i.i.d., F-MNIST         331    414    node 0 of a split of 20 % of the pool

The paper says "non-uniform sampling"; this split and the skewed one (`omni_skewed`) follow its authors' code: training
and test images are pooled, nodes are disjoint and stratified. The test share is 5/9 (778 of 1,400), stratified too.
A pool too small for `samples` and `test_samples` is dealt out whole, in the same proportion; the federation's json has
the actual sizes. `validation` is for choosing steps, which the paper does not: samples beside those of the table, with
the classes of the node's own, as a share of its training samples.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients, class_labels, in_proportion
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

EXAMPLES = {"mnist": {"clients": 3, "samples": 20, "test_samples": 25}}


def omni_stratified(
    dataset: Dataset,
    rng: np.random.Generator,
    *,
    clients: int = 5,
    samples: int = 622,
    test_samples: int = 778,
    validation: float = 0.0,
) -> Assignment:
    """Nodes of equal size with equal class counts (to within one)."""
    more = validation * samples / max(1, samples + test_samples)
    nodes = deal(dataset, rng, clients, samples, test_samples, "omni_stratified", times=1 + more)
    dealt = [rows[in_proportion(dataset.train.y[rows], rng)] for rows in nodes]
    sizes = [round(len(rows) / (1 + more)) for rows in dealt]
    kept, spare = (
        [rows[:n] for rows, n in zip(dealt, sizes, strict=True)],
        [rows[n:] for rows, n in zip(dealt, sizes, strict=True)],
    )
    return cut(kept, spare, dataset.train.y, rng, samples, test_samples, validation, "omni_stratified")


def deal(
    dataset: Dataset, rng: np.random.Generator, clients: int, samples: int, test_samples: int, scheme: str, times: float
) -> list[np.ndarray]:
    """Rows of each node: `times` the requested number, or the whole pool if it is smaller."""
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


def cut(
    nodes: list[np.ndarray],
    spare: list[np.ndarray],
    labels: np.ndarray,
    rng: np.random.Generator,
    samples: int,
    test_samples: int,
    validation: float,
    scheme: str,
) -> Assignment:
    """Each node's rows cut into training and test samples, stratified; its first spare rows are for validation."""
    train, test = [], []
    for rows in nodes:
        size = round(len(rows) * samples / (samples + test_samples))
        if not 0 < size < len(rows):
            raise UserError(f"{scheme}: a node of {len(rows)} samples cannot have both training and test samples")
        order = in_proportion(labels[rows], rng)
        train.append(rows[order[:size]])
        test.append(rows[order[size:]])
    if not validation:
        return Assignment({"train": train, "test": test}, of={"test": "train"})
    held = [rows[: round(validation * len(mine))] for rows, mine in zip(spare, train, strict=True)]
    return Assignment({"train": train, "validation": held, "test": test}, of={"validation": "train", "test": "train"})
