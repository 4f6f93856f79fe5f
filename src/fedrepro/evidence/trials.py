"""From a claim's measured numbers to its test: one number per seed on the scale of the test, the rule's outcomes, and
the scale on which the interval is shown.

- value, and threshold with a number: ours, on the claim's or the metric's transform (log, logit); plain where a number
  lies on the edge of its domain. A printed standard error is carried over by the slope there.
- ordering: the paired advantage of the favoured method; with the transform log, that of the paired log ratio, shown as
  a share of the other method.
- threshold with a quantity: the paired ours − limit, against 0.
- trend: the rank correlation, positive in the claimed direction.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrepro.evidence.intervals import PLAIN, TRANSFORMS, Numbers, Sample, Transform, difference
from fedrepro.evidence.power import Plan
from fedrepro.evidence.published import Printed, Stated
from fedrepro.evidence.quantities import Measured, Quantity
from fedrepro.evidence.verdicts import (
    Condition,
    Outcome,
    inside,
    rule_ordering,
    rule_threshold,
    rule_trend,
    rule_value,
)

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """`x`: one number per seed. `shown`: from the scale of x to that of the row. `effect`: that is to be shown (None:
    the distance seen from `limit`). `se`, `runs`: of the printed number, on the scale of x. `size`: of an ordering, its
    plain differences and the conditions on the printed size."""

    x: Numbers
    outcomes: Sequence[Outcome]
    what: str = ""
    across: str = "0"
    shown: Callable[[Any], Any] = PLAIN.back
    scale: str = ""
    effect: float | None = None
    limit: float = 0.0
    both: bool = False
    se: float = 0.0
    runs: float = math.inf
    size: tuple[Numbers, Sequence[Condition], Stated, str] | None = None

    def ends(self, sample: Sample) -> tuple[float, float]:
        """The interval as shown."""
        low, high = sorted(float(self.shown(end)) for end in (sample.low, sample.high))
        return low, high

    def tell(self, sample: Sample) -> str:
        low, high = self.ends(sample)
        span = f", 95 % interval {low:.4g} to {high:.4g}" if math.isfinite(low) else ""
        many = f" over {sample.seeds} seeds" if sample.seeds != 1 else ", one seed"
        return f"{self.what}mean {float(self.shown(sample.mean)):.4g}{span}{many}{self.scale}"

    def plan(self, s: float, mean: float) -> Plan:
        """What more seeds would have to show."""
        seen = max(0.0, *(outcome.distance(mean) for outcome in self.outcomes))
        effect, both = (seen, False) if self.effect is None else (self.effect, self.both)
        return Plan(effect, s, seen, self.se, self.runs, both)


def quantities(spec: Spec) -> list[tuple[str, Quantity]]:
    """(role, quantity) of a claim that is decided over seeds, the favoured one first."""
    if spec["kind"] == "ordering":
        return [("better", spec["better"]), ("worse", spec["worse"])]
    limit = spec.get("at_most", spec.get("at_least"))
    return [("ours", spec["ours"])] + ([("limit", limit)] if isinstance(limit, dict) else [])


def paired(measured: Sequence[Measured]) -> list[Numbers]:
    """The numbers of the seeds that all have."""
    seeds = sorted(set.intersection(*(set(m.values.index) for m in measured)))
    return [m.values.loc[seeds].to_numpy(dtype=float) for m in measured]


def amount(given: Mapping[str, float] | None, of: float) -> float:
    """{absolute: a} → a, {relative: r} → r·|of|; 0 without one."""
    given = given or {}
    return float(given.get("absolute", given.get("relative", 0.0) * abs(of)))


def trial_of(spec: Spec, measured: Sequence[Measured], printed: Printed, transforms: Mapping[str, str]) -> Trial:
    """The test of a claim that is decided over seeds."""
    numbers = paired(measured)
    match spec["kind"]:
        case "value":
            return _value(spec, numbers[0], printed.number(spec["published"]), transforms)
        case "ordering":
            return _ordering(spec, numbers[0], numbers[1], printed)
        case "threshold":
            return _threshold(spec, numbers, printed, transforms)
    rising, margin = spec["direction"] == "rising", amount(spec.get("margin"), 0.0)
    sign = 1.0 if rising else -1.0
    outcomes, words = rule_trend(margin), "rank correlation "
    return Trial(sign * numbers[0], outcomes, words, f"{sign * margin:.4g}", lambda y: sign * y, limit=margin)


def _scale(spec: Spec, x: Numbers, transforms: Mapping[str, str]) -> tuple[Transform, str]:
    """The transform of the claim, else of its metric, if all numbers lie inside its domain; and words on it."""
    name = spec.get("transform", transforms.get(spec["ours"]["metric"], ""))
    if not name or spec.get("every_seed"):
        return PLAIN, ""
    if TRANSFORMS[name].holds(x):
        return TRANSFORMS[name], f" ({name} scale)"
    return PLAIN, f" (plain scale: the {name} of a number is not finite)"


def _value(spec: Spec, x: Numbers, stated: Stated, transforms: Mapping[str, str]) -> Trial:
    """The band is published ± tolerance, its ends carried to the scale of the test."""
    f, words = _scale(spec, np.append(x, stated.value), transforms)
    tolerance = amount(spec["tolerance"], stated.value)
    low, high = f.limit(stated.value - tolerance), f.limit(stated.value + tolerance)
    centre, weaker, text = float(f.forward(stated.value)), None, ""
    for side, limit in spec.get("direction", {}).items():
        weaker, text = Condition(side, f.limit(limit)), f"{side} {limit:.4g}"
    band = f"{stated.value:.6g} ± {tolerance:.4g}"
    se = stated.se * f.slope(stated.value) if math.isfinite(stated.se) else 0.0
    return Trial(
        f.forward(x),
        rule_value(low, high, band, weaker, text),
        across=f"the edge of {band}",
        shown=f.back,
        scale=words,
        effect=min(high - centre, centre - low),
        both=True,
        se=se,
        runs=stated.runs if se else math.inf,
    )


def _ordering(spec: Spec, better: Numbers, worse: Numbers, printed: Printed) -> Trial:
    """d = better − worse (higher) or worse − better (lower). On the log scale d is the log ratio, and a margin that is
    the share r of `worse` is log(1 + r) (higher) or −log(1 − r) (lower)."""
    higher = spec["by"] == "higher"
    plain = difference(better, worse) if higher else difference(worse, better)
    mean = float(np.mean(worse)) if len(worse) else 0.0
    margin, size = amount(spec.get("margin"), mean), None
    if "published" in spec:
        stated = printed.number(spec["published"])
        tolerance = amount(spec["tolerance"], stated.value)
        band = inside(stated.value - tolerance, stated.value + tolerance)
        size = plain, band, stated, f"{stated.value:.6g} ± {tolerance:.4g}"
    effect = margin or None
    if "transform" not in spec:
        return Trial(plain, rule_ordering(margin), "advantage: ", effect=effect, size=size)
    if not TRANSFORMS["log"].holds(np.append(better, worse)):
        words = " (plain scale: the log of a number is not finite)"
        return Trial(plain, rule_ordering(margin), "advantage: ", scale=words, effect=effect, size=size)
    sign, share = (1.0 if higher else -1.0), margin / abs(mean) if mean else 0.0
    ratio = difference(sign * np.log(better), sign * np.log(worse))
    limit = sign * math.log1p(sign * share) if share < 1 or higher else math.inf

    def shown(y: Any) -> Any:
        return sign * np.expm1(sign * y)

    words = "advantage as a share: "
    return Trial(ratio, rule_ordering(limit), words, shown=shown, scale=" (log scale)", effect=limit or None, size=size)


def _threshold(spec: Spec, numbers: Sequence[Numbers], printed: Printed, transforms: Mapping[str, str]) -> Trial:
    """Ours against a number, limit ± margin carried to the scale of the test; or ours − limit against 0."""
    at_most = "at_most" in spec
    given, words = spec["at_most" if at_most else "at_least"], "at most" if at_most else "at least"
    if isinstance(given, dict):
        margin = amount(spec.get("margin"), float(np.mean(numbers[1])) if len(numbers[1]) else 0.0)
        outcomes = rule_threshold(0.0, at_most, -margin, margin, f"{words} 0")
        return Trial(difference(*numbers), outcomes, "ours − limit: ", effect=margin or None)
    limit, x = printed.number(given).value, numbers[0]
    f, scale = _scale(spec, x, transforms)
    margin, at = amount(spec.get("margin"), limit), f.limit(limit)
    low, high = f.limit(limit - margin), f.limit(limit + margin)
    outcomes = rule_threshold(at, at_most, low, high, f"{words} {limit:.6g}")
    effect = min(high - at, at - low) if margin and math.isfinite(at) else None
    return Trial(f.forward(x), outcomes, "", f"{limit:.6g}", f.back, scale, effect, at)
