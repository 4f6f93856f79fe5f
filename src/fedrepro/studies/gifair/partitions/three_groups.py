"""FEMNIST-3-groups (thesis Table 2.1): devices that write capitals, small letters, or both, all of them with digits.

    group      data type                          images   devices
    capital    capital letters + digits              800        60
    lowercase  lowercase letters + digits          1,000       100
    mixed      capital and lowercase + digits        600        40

Classes are those of EMNIST by-class and of LEAF: 0–9 digits, 10–35 capitals, 36–61 small letters.

Deviations: the table does not say whether images are counted per device or per group; here per device, since
otherwise a device would have about ten. That is more than a writer has, so the images of all writers are pooled.
Within a group, digits and letters are in the proportions of the pool unless `digits` is given; the thesis states none.
"""

import numpy as np

from fedrepro.data.assignment import Assignment, apportion, check_clients, class_labels, others, require_all_classes
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError

KINDS = {"digits": range(10), "capitals": range(10, 36), "small letters": range(36, 62)}
GROUPS = {"capital": ("digits", "capitals"), "lowercase": ("digits", "small letters"), "mixed": tuple(KINDS)}
IMAGES, DEVICES = (800, 1000, 600), (60, 100, 40)
MEAN = 860  # images per device, over the table's 200 devices
EXAMPLES = {"emnist": {"clients": 10, "samples": 43}}


def three_groups(
    dataset: Dataset,
    rng: np.random.Generator,
    *,
    clients: int = 200,
    samples: int = MEAN,
    digits: float | None = None,
) -> Assignment:
    """clients: of all groups, shared as 60 : 100 : 40. samples: mean per client, in the groups as 800 : 1000 : 600.
    digits: their share in each group; None: as in the pool. Images left over are not used; the data set's own test set
    is global."""
    labels = class_labels(dataset, "three_groups")
    if dataset.outputs != 62:
        raise UserError(f"three_groups: needs the 62 digits and letters of EMNIST; this data has {dataset.outputs}")
    require_all_classes(np.bincount(labels, minlength=62), "three_groups")
    check_clients(clients, len(labels), "three_groups")
    devices, images = apportion(clients, DEVICES), np.rint(samples * np.array(IMAGES) / MEAN).astype(int)
    if not devices.all() or not images.all():
        raise UserError(f"three_groups: {clients} clients of {samples} samples leave a group without any")
    if digits is not None and not 0 < digits < 1:
        raise UserError(f"three_groups: digits = {digits}: must lie between 0 and 1")
    kind_of = np.repeat(np.arange(len(KINDS)), [len(classes) for classes in KINDS.values()])[labels]
    pools = {kind: rng.permutation(np.flatnonzero(kind_of == number)) for number, kind in enumerate(KINDS)}
    sizes = {kind: len(pool) for kind, pool in pools.items()}
    rows: list[np.ndarray] = []
    for (group, kinds), count, each in zip(GROUPS.items(), devices, images, strict=True):
        mine, weights = [], [float(sizes[kind]) for kind in kinds]  # digits come first
        if digits is not None:
            weights[0] = sum(weights[1:]) * digits / (1 - digits)
        for kind, wanted in zip(kinds, apportion(count * each, weights), strict=True):
            if wanted > len(pools[kind]):
                raise UserError(f"three_groups: samples = {samples}: too few {kind} for {clients} clients ({group})")
            mine.append(pools[kind][:wanted])
            pools[kind] = pools[kind][wanted:]
        rows += list(rng.permutation(np.concatenate(mine)).reshape(count, each))
    return Assignment({"train": rows, **others(dataset)}, np.repeat(list(GROUPS), devices).tolist())
