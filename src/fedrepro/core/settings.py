"""The settings of an algorithm of an experiment: each of its variants at each point of its grid."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple


class Setting(NamedTuple):
    """One setting: the variant (may be empty), the method, the point of the grid, and all hyper-parameters."""

    variant: str
    method: str
    grid: dict[str, Any]
    hyper: dict[str, Any]


def settings_of(algorithm: str, arm: Mapping[str, Any]) -> dict[str, Setting]:
    """Name → setting of `algorithms.<algorithm>` in an experiment file.

    A variant may name a method and a grid of its own: methods that are short to run can share one job.
    """
    own = dict(arm)
    grid, variants = own.pop("grid", {}), own.pop("variants", {"": {}})
    found = {}
    for variant, changes in variants.items():
        hyper = {"method": algorithm, **own, **changes}
        method, axes = hyper.pop("method"), {**grid, **hyper.pop("grid", {})}
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values, strict=True))
            name = ",".join(filter(None, [variant, *(f"{k}={v}" for k, v in point.items())]))
            found[name] = Setting(variant, method, point, {**hyper, **point})
    return found


def origins(algorithm: str, arm: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Name → `variant`, `method` and `grid` of each setting, for a run's manifest."""
    return {
        name: {"variant": s.variant, "method": s.method, "grid": s.grid}
        for name, s in settings_of(algorithm, arm).items()
    }
