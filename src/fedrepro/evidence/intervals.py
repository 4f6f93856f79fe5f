"""Numbers over seeds: comparisons up to rounding, Student-t intervals and one-sided tests, sign flips, transforms.

The 95 % interval of a mean is m ± t(0.975, df)·se, with se = s/√n and df = n − 1. Its coverage, simulated, is 95 % for
normal numbers at any number of seeds. Where the numbers are skewed it is less. Exponential ones: 88 % at 3 seeds, 88 %
at 5, 90 % at 10, 93 % at 30. Lognormal ones (σ = 1): 84, 82, 84 and 88 %; on their log scale 95 %.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy import special

ALPHA = 0.05  # two-sided: a one-sided test rejects at half of it
# Sums in another order differ in the last digits; no verdict may depend on these.
ROUNDING = 1e-9
FEWEST_FLIPPED = 6  # with fewer seeds no two-sided sign-flip test reaches 5 %
EXACT = 13  # seeds up to which all 2ⁿ flips are taken; DRAWS random ones beyond
DRAWS = 9999
Numbers = np.ndarray[Any, np.dtype[np.float64]]


def at_least(a: float, b: float) -> bool:
    """a ≥ b up to rounding."""
    return a >= b - ROUNDING * max(abs(a), abs(b)) if math.isfinite(a) and math.isfinite(b) else a >= b


def above(a: float, b: float) -> bool:
    """a > b by more than rounding."""
    return not at_least(b, a)


def within(x: float, centre: float, tolerance: float) -> bool:
    """|x − centre| ≤ tolerance up to rounding."""
    return abs(x - centre) <= tolerance + ROUNDING * max(abs(x), abs(centre))


def difference(a: Numbers, b: Numbers) -> Numbers:
    """a − b, element by element, exactly 0 where the two differ by rounding only."""
    return np.where(np.isclose(a, b, rtol=ROUNDING, atol=0.0), 0.0, a - b)


@dataclass(frozen=True)
class Transform:
    """A scale on which intervals are made: y = forward(x), x = back(y), slope = dy/dx."""

    forward: Callable[[Any], Any]
    back: Callable[[Any], Any]
    slope: Callable[[float], float]
    low: float
    high: float

    def holds(self, x: Numbers | float) -> bool:
        """Whether all numbers lie inside the domain."""
        return bool(np.all(np.greater(x, self.low)) and np.all(np.less(x, self.high)))

    def limit(self, x: float) -> float:
        """A limit on the new scale; one outside the domain is infinite there."""
        if x <= self.low:
            return -math.inf
        return math.inf if x >= self.high else float(self.forward(x))


PLAIN = Transform(lambda x: x, lambda y: y, lambda x: 1.0, -math.inf, math.inf)
TRANSFORMS = {
    "log": Transform(np.log, np.exp, lambda x: 1 / x, 0.0, math.inf),
    "logit": Transform(special.logit, special.expit, lambda x: 1 / (x * (1 - x)), 0.0, 1.0),
}


@dataclass(frozen=True)
class Sample:
    """A mean over `seeds` seeds with its standard error and degrees of freedom. se = 0: all numbers are equal, and the
    interval is a point. `x`: the numbers, for sign flips."""

    mean: float
    se: float
    df: float
    seeds: int
    x: Numbers = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    @classmethod
    def of(cls, x: Numbers) -> "Sample":
        """se = s/√n; NaN for fewer than two numbers."""
        n = len(x)
        if n < 2:
            return cls(float(x[0]) if n else math.nan, math.nan, 0, n, x)
        if np.ptp(x) <= ROUNDING * np.max(np.abs(x)):
            return cls(float(np.median(x)), 0.0, n - 1, n, x)
        with np.errstate(over="ignore"):  # of numbers beyond 1e154 the spread is infinite
            return cls(float(np.mean(x)), float(np.std(x, ddof=1)) / math.sqrt(n), n - 1, n, x)

    def with_spread(self, s: float, df: float) -> "Sample":
        """The same mean with a borrowed standard deviation: se = s/√n."""
        return Sample(self.mean, s / math.sqrt(self.seeds), df, self.seeds)

    def against(self, se: float, runs: float) -> "Sample":
        """The sample as its difference from a printed mean with standard error `se` over `runs` runs, by Welch."""
        if se == 0 or not math.isfinite(se):
            return self
        return Sample(self.mean, *welch(self.se, self.df, se, runs), self.seeds, self.x)

    @property
    def low(self) -> float:
        return self.mean - self._half

    @property
    def high(self) -> float:
        return self.mean + self._half

    @property
    def _half(self) -> float:
        if self.se == 0:
            return 0.0
        return float(special.stdtrit(self.df, 1 - ALPHA / 2)) * self.se if self.df > 0 else math.nan

    def p_above(self, limit: float, closed: bool = False) -> float:
        """One-sided p against `mean ≤ limit`: P(t_df ≥ (m − limit)/se). Without spread it is 0 or 1; `closed`: a mean
        that equals the limit counts as above."""
        if self.se == 0 or math.isinf(limit):
            return float(not (at_least if closed else above)(self.mean, limit))
        return float(special.stdtr(self.df, (limit - self.mean) / self.se))

    def p_below(self, limit: float, closed: bool = False) -> float:
        """One-sided p against `mean ≥ limit`."""
        if self.se == 0 or math.isinf(limit):
            return float(not (at_least if closed else above)(limit, self.mean))
        return float(special.stdtr(self.df, (self.mean - limit) / self.se))

    def flip_above(self, limit: float, closed: bool = False) -> float:
        """`p_above` by sign flips: the share of all signs ± of x − limit whose sum reaches the one seen. Exact up to
        EXACT seeds; beyond, from DRAWS random flips and the one seen."""
        return _flipped(self.x, limit, 1, closed)

    def flip_below(self, limit: float, closed: bool = False) -> float:
        return _flipped(self.x, limit, -1, closed)


def welch(se: float, df: float, other: float, runs: float) -> tuple[float, float]:
    """Standard error and degrees of freedom of a difference of means: √(a + b) and (a + b)² / (a²/df + b²/(runs − 1)),
    with a = se² and b = other²."""
    total = math.hypot(se, other)
    share = (other / total) ** 2 if total else 0.0
    return total, 1 / ((1 - share) ** 2 / df + share**2 / (runs - 1))


def p_two_sided(sample: Sample, value: float) -> float:
    """Two-sided p of the mean against a number: 2·P(t_df ≥ |m − value|/se)."""
    if sample.se == 0:
        return float(within(sample.mean, value, 0.0))
    return float(2 * special.stdtr(sample.df, -abs(sample.mean - value) / sample.se))


def _flipped(x: Numbers, limit: float, sign: int, closed: bool) -> float:
    if len(x) < FEWEST_FLIPPED:
        return math.nan
    if math.isinf(limit):
        return float(limit * sign > 0)
    y = sign * difference(x, np.full(len(x), limit))
    if not y.any():
        return 0.0 if closed else 1.0
    signs, seen = _signs(len(x)), y.sum()
    reached = int(np.sum(signs @ y >= seen - ROUNDING * np.abs(y).sum()))
    return reached / len(signs) if len(x) <= EXACT else (reached + 1) / (len(signs) + 1)


@cache
def _signs(n: int) -> Numbers:
    """All 2ⁿ rows of n signs up to EXACT; else DRAWS random ones, the same ones every time."""
    if n <= EXACT:
        return np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    return np.random.default_rng(n).choice((1.0, -1.0), size=(DRAWS, n))
