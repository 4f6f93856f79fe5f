"""The clients that the data itself names (writers, roles, engines, schools, simulated clients): all, or some."""

import numpy as np

from fedrepro.data.assignment import Assignment, rows_by_owner
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError, nearest

CHOOSE = ("largest", "random", "first")
EXAMPLES = {"dfl_line": {}, "femnist": {"clients": 2, "choose": "random", "minimum": 2}}


def by_client(
    dataset: Dataset, rng: np.random.Generator, *, clients: int | None = None, choose: str = "largest", minimum: int = 1
) -> Assignment:
    """Client k holds the rows marked k; a test or validation set without marks is global. Of the clients with `minimum`
    training samples, `clients` (default: all) are kept, in the data's order: the largest, random ones, or the first."""
    if dataset.train.client is None:
        raise UserError("by_client: this data set does not say which client a sample belongs to")
    if choose not in CHOOSE:
        raise UserError(f"by_client: choose = '{choose}' is unknown{nearest(choose, CHOOSE)}")
    sizes = _sizes(dataset.train.client)
    kept = _chosen(sizes, rng, clients, choose, minimum)
    rows = {}
    for name, split in dataset.splits().items():
        if split.client is None:
            rows[name] = [np.arange(len(split))]
            continue
        unknown = np.unique(split.client[(split.client < 0) | (split.client >= len(sizes))])
        if len(unknown):
            raise UserError(f"by_client: the {name} set has clients without training samples: {_few(unknown)}")
        held = rows_by_owner(np.arange(len(split)), split.client, len(sizes))
        rows[name] = [held[k] for k in kept]
    if dataset.train.group is None:
        return Assignment(rows)
    names = dataset.facts.get("group_names")
    groups = [dataset.train.group[mine[0]] for mine in rows["train"]]
    return Assignment(rows, [str(group if names is None else names[group]) for group in groups])


def _sizes(client: np.ndarray) -> np.ndarray:
    """Number of training samples of client 0, 1, …; UserError for a gap."""
    sizes = np.bincount(client) if client.min() >= 0 and client.max() < len(client) else np.zeros(1, dtype=int)
    if not sizes.all():
        raise UserError(f"by_client: clients must be numbered 0, 1, …: training samples have {_few(np.unique(client))}")
    return sizes


def _chosen(sizes: np.ndarray, rng: np.random.Generator, clients: int | None, choose: str, minimum: int) -> np.ndarray:
    large = np.flatnonzero(sizes >= minimum)
    wanted = len(large) if clients is None else clients
    if not 1 <= wanted <= len(large):
        asked = "" if clients is None else f"clients = {clients}: "
        raise UserError(f"by_client: {asked}{len(large)} of the {len(sizes)} have at least {minimum} training samples")
    if choose != "first":
        large = rng.permutation(large) if choose == "random" else large[np.argsort(-sizes[large], kind="stable")]
    return np.sort(large[:wanted])


def _few(numbers: np.ndarray) -> str:
    return ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
