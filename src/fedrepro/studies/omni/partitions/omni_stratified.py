"""Nodes of Omni-Fedge with equal class counts (see `fedrepro.studies.omni.splits`)."""

from __future__ import annotations

import numpy as np

from fedrepro.data.dataset import Dataset
from fedrepro.data.federation_files import Assignment
from fedrepro.studies.omni.splits import cut, deal


def omni_stratified(
    dataset: Dataset, rng: np.random.Generator, *, clients: int = 5, samples: int = 622, test_samples: int = 778
) -> Assignment:
    """Nodes of equal size with equal class counts (to within one)."""
    nodes = deal(dataset, rng, clients, samples, test_samples, "omni_stratified")
    return cut(nodes, dataset.train.y, rng, samples, test_samples, "omni_stratified")
