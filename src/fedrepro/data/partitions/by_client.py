"""The clients that the data itself names (writers, roles, engines, schools, simulated clients)."""

import numpy as np

from fedrepro.data.assignment import Assignment, rows_by_owner
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

EXAMPLES: dict[str, dict[str, int]] = {"dfl_line": {}, "femnist": {}}


def by_client(dataset: Dataset, rng: np.random.Generator) -> Assignment:
    """Client k holds the rows marked k; a test or validation set without marks is global."""
    client = dataset.train.client
    if client is None:
        raise UserError("by_client: this data set does not say which client a sample belongs to")
    sizes = np.bincount(client) if client.min() >= 0 and client.max() < len(client) else np.zeros(1, dtype=int)
    if not sizes.all():
        raise UserError(f"by_client: clients must be numbered 0, 1, …: training samples have {_few(np.unique(client))}")
    rows = {}
    for name, split in dataset.splits().items():
        if split.client is None:
            rows[name] = [np.arange(len(split))]
            continue
        unknown = np.unique(split.client[(split.client < 0) | (split.client >= len(sizes))])
        if len(unknown):
            raise UserError(f"by_client: the {name} set has clients without training samples: {_few(unknown)}")
        rows[name] = rows_by_owner(np.arange(len(split)), split.client, len(sizes))
    if dataset.train.group is None:
        return Assignment(rows)
    names = dataset.facts.get("group_names")
    groups = [dataset.train.group[mine[0]] for mine in rows["train"]]
    return Assignment(rows, [str(group if names is None else names[group]) for group in groups])


def _few(numbers: np.ndarray) -> str:
    return ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
