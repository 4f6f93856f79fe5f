"""What the stratified and the skewed split of Omni-Fedge (ICASSP 2021, §5) share: nodes dealt from one pool, each with
its own test set.

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


def cut(
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
