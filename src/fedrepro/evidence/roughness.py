"""What a curve over rounds does apart from its trend."""

from __future__ import annotations

import math

import numpy as np

MIN_POINTS = 5  # of a curve, for its third differences to have a spread


def roughness(values: np.ndarray) -> float:
    """Deviation of the third differences over √20; NaN for fewer than MIN_POINTS values.

    Third differences remove any quadratic trend, so that falling is no roughness. Of independent noise of deviation s
    they have the deviation √20·s: then this is s.
    """
    if len(values) < MIN_POINTS:
        return math.nan
    return float(np.sqrt(np.mean(np.diff(values, n=3) ** 2) / 20))
