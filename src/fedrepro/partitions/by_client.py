"""The clients that the data itself names: writer, role, engine, school, or the client a sample was drawn for."""

from __future__ import annotations

import numpy as np

from fedrepro.datasets.base import SPLITS, Dataset
from fedrepro.errors import UserError
from fedrepro.partitions.base import Assignment


def by_client(dataset: Dataset, rng: np.random.Generator) -> Assignment:
    """Client k holds the rows marked k. A test or validation set without marks is global."""
    if dataset.train.client is None:
        raise UserError("by_client: this data set does not say which client a sample belongs to")
    present = np.unique(dataset.train.client)
    clients = len(present)
    if not np.array_equal(present, np.arange(clients)):
        raise UserError(f"by_client: clients must be numbered 0, 1, …: training samples have {_few(present)}")
    rows = {}
    for name in SPLITS:
        split = getattr(dataset, name)
        if split is None:
            continue
        if split.client is None:
            rows[name] = [np.arange(len(split.x))]
            continue
        unknown = np.setdiff1d(split.client, present)
        if len(unknown):
            raise UserError(f"by_client: the {name} set has clients without training samples: {_few(unknown)}")
        order = np.argsort(split.client, kind="stable")
        rows[name] = np.split(order, np.searchsorted(split.client[order], np.arange(1, clients)))
    groups: list[str] = []
    if dataset.train.group is not None:
        groups = [str(dataset.train.group[held[0]]) for held in rows["train"]]
    return Assignment(rows, groups)


def _few(numbers: np.ndarray) -> str:
    return ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
