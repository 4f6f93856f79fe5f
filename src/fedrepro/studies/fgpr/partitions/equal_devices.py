"""Random devices of exactly equal size (thesis §4.7: SARCOS at random on 25 devices).

Every split of the data set is dealt out, so each device has its own test samples. A remainder is dropped: 44,484
training and 4,449 test samples on 25 devices make 1,779 and 177 each, with 9 and 24 unused. The thesis prints "around
1850 … and 180", more than the data set holds.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

EXAMPLES = {"sarcos": {"clients": 3}}


def equal_devices(
    dataset: Dataset, rng: np.random.Generator, *, clients: int, at_most: int | None = None
) -> Assignment:
    """at_most: training samples per device; by default all."""
    check_clients(clients, len(dataset.train), "equal_devices")
    rows = {}
    for name, split in dataset.splits().items():
        each = len(split) // clients
        if name == "train" and at_most is not None:
            each = min(each, at_most)
        if not each:
            raise UserError(f"equal_devices: clients = {clients}: there are only {len(split)} {name} samples")
        rows[name] = list(rng.permutation(len(split))[: clients * each].reshape(clients, each))
    return Assignment(rows)
