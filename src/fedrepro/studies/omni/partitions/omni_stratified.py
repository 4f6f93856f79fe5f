"""Nodes of Omni-Fedge with equal class counts (see `fedrepro.studies.omni.splits`)."""

import numpy as np

from fedrepro.data.assignment import Assignment
from fedrepro.data.dataset import Dataset
from fedrepro.studies.omni.splits import cut, deal

EXAMPLES = {"mnist": {"clients": 3, "samples": 20, "test_samples": 25}}


def omni_stratified(
    dataset: Dataset, rng: np.random.Generator, *, clients: int = 5, samples: int = 622, test_samples: int = 778
) -> Assignment:
    """Nodes of equal size with equal class counts (to within one)."""
    nodes = deal(dataset, rng, clients, samples, test_samples, "omni_stratified")
    return cut(nodes, dataset.train.y, rng, samples, test_samples, "omni_stratified")
