"""Clients that train and clients that come too late (thesis App. C.3: 60 and 40 of 100 engines).

Of the data set's clients, `old` random ones come first and hold all their samples for training. The others come last;
they predict from a random half (`train`) of their samples and are tested on the rest.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, rows_by_owner
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

EXAMPLES = {"cmapss_engines": {"old": 2, "new": 1}}


def newcomers(
    dataset: Dataset, rng: np.random.Generator, *, old: int, new: int | None = None, train: float = 0.5
) -> Assignment:
    """new: number of the others, by default all."""
    if dataset.train.client is None:
        raise UserError("newcomers: this data set does not say which client a sample belongs to")
    total = int(dataset.train.client.max()) + 1
    new = total - old if new is None else new
    if not (old >= 1 <= new and old + new <= total):
        raise UserError(f"newcomers: old = {old}, new = {new}: both at least 1, together at most {total}")
    if not 0 < train < 1:
        raise UserError(f"newcomers: train = {train}: must lie between 0 and 1")
    held = rows_by_owner(np.arange(len(dataset.train)), dataset.train.client, total)
    order = rng.permutation(total)
    rows = {"train": [held[k] for k in order[:old]], "test": [np.empty(0, dtype=np.int64) for _ in range(old)]}
    for k in order[old : old + new]:
        cut = min(max(1, round(train * len(held[k]))), len(held[k]) - 1)
        mine = rng.permutation(held[k])
        rows["train"].append(mine[:cut])
        rows["test"].append(mine[cut:])
    return Assignment(rows, of={"test": "train"})
