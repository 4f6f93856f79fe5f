"""k classes per client, all clients of one size (thesis §2.5.1, FEMNIST-skewed: 10 letters, 5 on each of 100 devices,
500 images per device).

Each client's classes are random, and every class is held by the same number of clients (to within one). A client has
the same number of samples of each of its classes (to within one). Deviation from the script of Li et al. (2018), which
the thesis follows: no sample is used twice; there devices share images.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, check_clients, class_labels, others, require_all_classes, rows_by_class
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

EXAMPLES = {"emnist": {"clients": 50, "classes": 2}}


def k_classes(
    dataset: Dataset, rng: np.random.Generator, *, clients: int, classes: int, samples: int | None = None
) -> Assignment:
    """samples: per client (default: as many as the scarcest class allows), others are unused. Test sets are global."""
    labels = class_labels(dataset, "k_classes")
    check_clients(clients, len(labels), "k_classes")
    if not 1 <= classes <= dataset.outputs:
        raise UserError(f"k_classes: classes = {classes}: the data set has 1 to {dataset.outputs}")
    if clients * classes < dataset.outputs:
        raise UserError(f"k_classes: {clients} clients of {classes} classes do not cover all {dataset.outputs}")
    rows = rows_by_class(labels, dataset.outputs, rng)
    sizes = np.array([len(mine) for mine in rows])
    require_all_classes(sizes, "k_classes")
    chosen = choose_classes(rng, clients, classes, dataset.outputs)
    if samples is None:
        samples = classes * int((sizes // np.bincount(chosen.ravel())).min())
    if samples < classes:
        raise UserError(f"k_classes: {samples} samples per client: too few for {classes} classes")
    wanted = np.full((clients, classes), samples // classes)
    wanted[:, : samples % classes] += 1
    needed = np.bincount(chosen.ravel(), weights=wanted.ravel()).astype(int)
    if (needed > sizes).any():
        worst = int(np.argmin(sizes / needed))
        raise UserError(f"k_classes: samples = {samples}: class {worst} has {sizes[worst]}, {needed[worst]} are needed")
    held, used = [], np.zeros(dataset.outputs, dtype=int)
    for mine, parts in zip(chosen, wanted, strict=True):
        held.append(np.concatenate([rows[c][used[c] : used[c] + n] for c, n in zip(mine, parts, strict=True)]))
        used[mine] += parts
    return Assignment({"train": held, **others(dataset)})


def choose_classes(rng: np.random.Generator, clients: int, classes: int, outputs: int) -> np.ndarray:
    """Different classes for each client, [clients, classes]; every class equally often (to within one).

    A class that needs all remaining clients is taken. The others are drawn in proportion to the number of clients that
    they still need. Neither can run out before the last client.
    """
    to_hold = np.full(outputs, clients * classes // outputs)
    to_hold[rng.permutation(outputs)[: clients * classes % outputs]] += 1
    chosen = np.empty((clients, classes), dtype=int)
    for client in range(clients):
        due = to_hold == clients - client
        free = np.where(due, 0, to_hold)
        mine = np.flatnonzero(due)
        if len(mine) < classes:
            drawn = rng.choice(outputs, size=classes - len(mine), replace=False, p=free / free.sum())
            mine = np.concatenate([mine, drawn])
        chosen[client] = rng.permutation(mine)
        to_hold[mine] -= 1
    return chosen
