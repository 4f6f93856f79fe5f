"""Nodes of Omni-Fedge that keep a fraction ~ U(0, ½) of each class, else as in `omni_stratified`."""

import numpy as np

from fedrepro.data.assignment import Assignment, rows_by_class
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.omni.partitions.omni_stratified import cut, deal

KEPT = 0.5  # the largest fraction of a class that a node keeps
REDRAWS = 100
EXAMPLES = {"mnist": {"clients": 3, "samples": 20, "test_samples": 25}}


def omni_skewed(
    dataset: Dataset, rng: np.random.Generator, *, clients: int = 5, samples: int = 622, test_samples: int = 778
) -> Assignment:
    """samples, test_samples: mean per node; a node is dealt four times as many and keeps a quarter on average.
    The defaults are MNIST's (a node is dealt 5,600 = 40 % of 70,000 / 5); F-MNIST's are 311 and 389."""
    nodes = deal(dataset, rng, clients, samples, test_samples, "omni_skewed", times=2 / KEPT)
    kept = [_thin(rows, dataset.train.y[rows], rng) for rows in nodes]
    return cut(kept, dataset.train.y, rng, samples, test_samples, "omni_skewed")


def _thin(rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fraction ~ U(0, KEPT) of each class; drawn again if that leaves less than two samples."""
    classes = rows_by_class(labels, int(labels.max()) + 1, rng)
    for _ in range(REDRAWS):
        kept = [mine[: int(rng.uniform(0, KEPT) * len(mine))] for mine in classes]
        if sum(map(len, kept)) > 1:
            return np.asarray(rows[np.concatenate(kept)])
    few = f"a node of {len(rows)} samples kept less than two in {REDRAWS} draws; too small a pool"
    raise UserError(f"omni_skewed: {few}")
