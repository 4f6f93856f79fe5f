"""Roughness of a curve over rounds."""

import math

import numpy as np

MIN_POINTS = 5  # fewer give no spread of third differences


def roughness(values: np.ndarray) -> float:
    """Deviation of the third differences over √20; NaN for fewer than MIN_POINTS values. Third differences remove any
    quadratic trend; for independent noise of deviation s theirs is √20·s, so the roughness is s."""
    if len(values) < MIN_POINTS:
        return math.nan
    return float(np.sqrt(np.mean(np.diff(values, n=3) ** 2) / 20))
