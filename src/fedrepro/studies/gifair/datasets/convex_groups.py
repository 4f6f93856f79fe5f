"""A strongly convex federation for the theory (thesis §2.3.2; added): groups of devices with linear regressions.

Shapes: train x [groups · devices · samples, features] ~ N(0, I), y = xᵀw_g + noise · N(0, 1); client [n], group [n].
A group's coefficients are w_g = 1 + heterogeneity · N(0, I): at 0 the data of all devices are alike, and Γ_K vanishes
as samples grow. Later groups have more noise (twice that of the first for the last), so that their losses differ.
`facts["w"]` [groups, features]. Synthetic by definition.
"""

from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError


def convex_groups(
    source: Source,
    *,
    groups: int = 2,
    devices: int = 2,
    samples: int = 50,
    features: int = 3,
    noise: float = 0.5,
    heterogeneity: float = 0.0,
) -> Dataset:
    """devices: per group. samples: per device; more than features, else the losses are not strongly convex."""
    if samples <= features:
        raise UserError(f"convex_groups: samples = {samples}: must be more than features = {features}")
    w = 1 + heterogeneity * source.rng.standard_normal((groups, features))
    group = np.repeat(np.arange(groups), devices * samples)
    x = source.rng.standard_normal((len(group), features))
    deviation = noise * (1 + group / max(1, groups - 1))
    y = (x * w[group]).sum(axis=1) + deviation * source.rng.standard_normal(len(group))
    client = np.repeat(np.arange(groups * devices), samples)
    return Dataset("synthetic", train=Split(x, y, client=client, group=group), facts={"w": w})


def convex_groups_size(groups: int = 2, devices: int = 2, samples: int = 50, **_: Any) -> tuple[int, int]:
    return groups * devices, groups * devices * samples


DATASET = Entry(convex_groups, seeded=True, size=convex_groups_size)
