"""Everybody alike: samples dealt out at random, sizes equal to within one."""

from __future__ import annotations

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.data.federation_files import Assignment
from fedrepro.data.pool import check_clients, others


def iid(dataset: Dataset, rng: np.random.Generator, *, clients: int) -> Assignment:
    """All training samples, each at one client. The data set's own test set is global."""
    check_clients(clients, len(dataset.train), "iid")
    return Assignment({"train": np.array_split(rng.permutation(len(dataset.train)), clients), **others(dataset)})
