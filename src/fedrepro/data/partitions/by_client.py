"""The clients that the data itself names: by writer, by role, by engine, by school, or by the client a sample was drawn
for. All of them, or some.
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.data.federation_files import Assignment
from fedrepro.data.pool import rows_by_owner
from fedrepro.errors import UserError, nearest

CHOOSE = ("largest", "random", "first")


def by_client(
    dataset: Dataset,
    rng: np.random.Generator,
    *,
    clients: int | None = None,
    choose: str = "largest",
    minimum: int = 1,
) -> Assignment:
    """Client k holds the rows marked k. A test or validation set without marks is global.

    clients: how many to keep of those with `minimum` training samples (all, where it is not given): the largest,
    random ones, or the first. They keep the data's order and are numbered anew. Groups have the names of
    facts["group_names"], or else their numbers.
    """
    if dataset.train.client is None:
        raise UserError("by_client: this data set does not say which client a sample belongs to")
    if choose not in CHOOSE:
        raise UserError(f"by_client: choose = '{choose}' is unknown{nearest(choose, CHOOSE)}")
    sizes = _sizes(dataset.train.client)
    number = len(sizes)
    kept = _chosen(sizes, rng, clients, choose, minimum)
    rows = {}
    for name, split in dataset.splits().items():
        if split.client is None:
            rows[name] = [np.arange(len(split))]
            continue
        unknown = np.unique(split.client[(split.client < 0) | (split.client >= number)])
        if len(unknown):
            raise UserError(f"by_client: the {name} set has clients without training samples: {_few(unknown)}")
        held = rows_by_owner(np.arange(len(split)), split.client, number)
        rows[name] = [held[k] for k in kept]
    groups: list[str] = []
    if dataset.train.group is not None:
        names = dataset.facts.get("group_names")
        numbers = [dataset.train.group[held[0]] for held in rows["train"]]
        groups = [str(number if names is None else names[number]) for number in numbers]
    return Assignment(rows, groups)


def _sizes(client: np.ndarray) -> np.ndarray:
    """Training samples of client 0, 1, …: none may be missing."""
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
    if choose == "random":
        large = rng.permutation(large)
    if choose == "largest":
        large = large[np.argsort(-sizes[large], kind="stable")]
    return np.sort(large[:wanted])


def _few(numbers: np.ndarray) -> str:
    return ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
