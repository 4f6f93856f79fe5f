"""Identically distributed clients: samples dealt out at random, sizes equal to within one."""

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients, others
from fedrepro.data.dataset import Dataset

EXAMPLES = {"cifar10": {"clients": 3}}


def iid(dataset: Dataset, rng: np.random.Generator, *, clients: int) -> Assignment:
    """All training samples, each at one client. The data set's own test set is global."""
    check_clients(clients, len(dataset.train), "iid")
    return Assignment({"train": np.array_split(rng.permutation(len(dataset.train)), clients), **others(dataset)})
