"""Nodes of Omni-Fedge that keep a fraction ~ U(0, ½) of each class, else as in `omni_stratified`."""

import numpy as np

from fedrepro.data.assignment import Assignment, in_proportion, rows_by_class
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.omni.partitions.omni_stratified import cut, deal

KEPT = 0.5  # the largest fraction of a class that a node keeps
REDRAWS = 100
EXAMPLES = {"mnist": {"clients": 3, "samples": 20, "test_samples": 25}}


def omni_skewed(
    dataset: Dataset,
    rng: np.random.Generator,
    *,
    clients: int = 5,
    samples: int = 622,
    test_samples: int = 778,
    validation: float = 0.0,
) -> Assignment:
    """samples, test_samples: mean per node; a node is dealt four times as many and keeps a quarter on average.
    The defaults are MNIST's (a node is dealt 5,600 = 40 % of 70,000 / 5); F-MNIST's are 311 and 389."""
    nodes = deal(dataset, rng, clients, samples, test_samples, "omni_skewed", times=2 / KEPT)
    kept, spare = zip(*(_thin(rows, dataset.train.y[rows], rng) for rows in nodes), strict=True)
    return cut(list(kept), list(spare), dataset.train.y, rng, samples, test_samples, validation, "omni_skewed")


def _thin(rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(a fraction ~ U(0, KEPT) of each class, as many others of each class in proportion); drawn again if that leaves
    less than two samples."""
    classes = rows_by_class(labels, int(labels.max()) + 1, rng)
    for _ in range(REDRAWS):
        sizes = [int(rng.uniform(0, KEPT) * len(mine)) for mine in classes]
        if sum(sizes) > 1:
            kept = np.concatenate([mine[:n] for mine, n in zip(classes, sizes, strict=True)])
            spare = np.concatenate([mine[n : 2 * n] for mine, n in zip(classes, sizes, strict=True)])
            return rows[kept], rows[spare[in_proportion(labels[spare], rng)]]
    few = f"a node of {len(rows)} samples kept less than two in {REDRAWS} draws; too small a pool"
    raise UserError(f"omni_skewed: {few}")
