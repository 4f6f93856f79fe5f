"""Common parts of the stratified and the skewed split of Omni-Fedge (ICASSP 2021, §5): nodes dealt from one pool, each
with its own test set.

    printed, per node      training   test
    i.i.d., both                622    778    10 % of the pool of 70,000, over 5 nodes
    non-i.i.d., MNIST           673    842    node 0 of a split of 40 % of the pool
    non-i.i.d., F-MNIST         331    414    node 0 of a split of 20 % of the pool

The paper says "non-uniform sampling"; the splits follow its authors' code: training and test images are pooled, nodes
are disjoint and stratified, and in the skewed split each node keeps a fraction ~ U(0, ½) of each class. The test share
is 5/9 (778 of 1,400), stratified too.

A pool too small for `samples` and `test_samples` is dealt out whole, in the same proportion; the federation's json has
the actual sizes.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients, class_labels, in_proportion
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError


def deal(
    dataset: Dataset,
    rng: np.random.Generator,
    clients: int,
    samples: int,
    test_samples: int,
    scheme: str,
    times: float = 1,
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
    nodes: list[np.ndarray], labels: np.ndarray, rng: np.random.Generator, samples: int, test_samples: int, scheme: str
) -> Assignment:
    """Each node's rows cut into training and test samples, stratified."""
    train, test = [], []
    for rows in nodes:
        size = round(len(rows) * samples / (samples + test_samples))
        if not 0 < size < len(rows):
            raise UserError(f"{scheme}: a node of {len(rows)} samples cannot have both training and test samples")
        order = in_proportion(labels[rows], rng)
        train.append(rows[order[:size]])
        test.append(rows[order[size:]])
    return Assignment({"train": train, "test": test}, of={"test": "train"})
