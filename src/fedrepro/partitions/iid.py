"""Everybody alike: samples dealt out at random, sizes equal to within one."""

from __future__ import annotations

import numpy as np

from fedrepro.datasets.base import Dataset
from fedrepro.partitions.base import Assignment
from fedrepro.partitions.pool import check_clients, others


def iid(dataset: Dataset, rng: np.random.Generator, *, clients: int) -> Assignment:
    """All training samples, each at one client. The data set's own test set is global."""
    check_clients(clients, len(dataset.train), "iid")
    return Assignment({"train": np.array_split(rng.permutation(len(dataset.train)), clients), **others(dataset)})
