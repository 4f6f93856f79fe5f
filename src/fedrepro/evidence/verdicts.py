"""Verdicts: one rule per kind of claim, each an ordered list of outcomes; and Holm's correction within a family.

An outcome holds if all its conditions do: its p is the largest of theirs (intersection-union). The first outcome of a
rule with p ≤ α/2, that is, whose 95 % interval lies wholly on its side, decides. If none does, the claim is undecided.
The p of a verdict is twice that of its outcome; of an undecided claim, twice the smallest.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from fedrepro.evidence.intervals import ALPHA, Numbers, Sample, at_least, within

VERDICTS = ("reproduced", "direction", "not reproduced", "undecided", "contradicted by the source", "not tested")
REPRODUCED, DIRECTION, NOT_REPRODUCED, UNDECIDED, CONTRADICTED, NOT_TESTED = VERDICTS
FEWEST = 3  # seeds that a verdict needs
Side = Literal["above", "below"]


class Condition(NamedTuple):
    """The mean lies on a side of a limit. `closed`: the limit itself counts, where there is no spread."""

    side: Side
    limit: float
    closed: bool = False

    def p(self, sample: Sample) -> float:
        return (sample.p_above if self.side == "above" else sample.p_below)(self.limit, self.closed)

    def p_flip(self, sample: Sample) -> float:
        return (sample.flip_above if self.side == "above" else sample.flip_below)(self.limit, self.closed)


class Outcome(NamedTuple):
    """What is concluded, in which words, if all conditions hold."""

    verdict: str
    words: str
    conditions: tuple[Condition, ...]

    def p(self, sample: Sample) -> float:
        return max(condition.p(sample) for condition in self.conditions)

    def distance(self, mean: float) -> float:
        """How far a mean lies on the right side of all limits; negative where it does not."""
        return min((mean - c.limit) * (1 if c.side == "above" else -1) for c in self.conditions)

    def p_flip(self, sample: Sample) -> float:
        return max(condition.p_flip(sample) for condition in self.conditions)


class Finding(NamedTuple):
    """A verdict with its words; p and p_flip are NaN where no test was made."""

    verdict: str
    words: str
    p: float = math.nan
    p_flip: float = math.nan


def decide(sample: Sample, outcomes: Sequence[Outcome]) -> Finding:
    """The first outcome with p ≤ α/2, or undecided."""
    ps = [outcome.p(sample) for outcome in outcomes]
    held = [i for i, p in enumerate(ps) if p <= ALPHA / 2]
    chosen = held[0] if held else int(np.argmin(ps))
    p, flip = (float(np.minimum(1.0, 2 * one)) for one in (ps[chosen], outcomes[chosen].p_flip(sample)))
    if held:
        return Finding(outcomes[chosen].verdict, outcomes[chosen].words, p, flip)
    return Finding(UNDECIDED, "the interval lies across the limit", p, flip)


def inside(low: float, high: float) -> tuple[Condition, Condition]:
    """Two one-sided tests: low ≤ mean ≤ high."""
    return Condition("above", low, closed=True), Condition("below", high, closed=True)


def rule_value(low: float, high: float, band: str, weaker: Condition | None = None, words: str = "") -> list[Outcome]:
    """Of a mean against low … high (published ± tolerance, written `band`). Inside: reproduced. Outside: direction
    where the weaker statement (written `words`) holds too, else not reproduced."""
    sides = (Condition("above", high), Condition("below", low))
    direction = [Outcome(DIRECTION, f"outside {band}, but {words}", (side, weaker)) for side in sides if weaker]
    wrong = [Outcome(NOT_REPRODUCED, f"outside {band}", (side,)) for side in sides]
    return [Outcome(REPRODUCED, f"inside {band}", inside(low, high)), *direction, *wrong]


def rule_ordering(margin: float) -> list[Outcome]:
    """Of the advantage d of the favoured method. −m ≤ d ≤ m: not reproduced, no difference that matters. d > 0:
    reproduced. d < 0: not reproduced, reversed."""
    return [
        Outcome(NOT_REPRODUCED, "no difference that matters, shown", inside(-margin, margin)),
        Outcome(REPRODUCED, "above 0", (Condition("above", 0.0),)),
        Outcome(NOT_REPRODUCED, "reversed", (Condition("below", 0.0),)),
    ]


def rule_threshold(limit: float, at_most: bool, low: float, high: float, words: str) -> list[Outcome]:
    """Of a mean against a limit (written `words`: at most 3). On the right side: reproduced. low ≤ mean ≤ high (limit ±
    margin): reproduced, at the limit. On the wrong side: not reproduced."""
    right: Side = "below" if at_most else "above"
    wrong: Side = "above" if at_most else "below"
    return [
        Outcome(REPRODUCED, words, (Condition(right, limit, closed=True),)),
        Outcome(REPRODUCED, "at the limit, within the margin", inside(low, high)),
        Outcome(NOT_REPRODUCED, f"not {words}", (Condition(wrong, limit),)),
    ]


def rule_trend(margin: float) -> list[Outcome]:
    """Of the rank correlation ρ, positive in the claimed direction. ρ > m: reproduced. −m ≤ ρ ≤ m: not reproduced, no
    trend. ρ < 0: not reproduced, reversed."""
    return [
        Outcome(REPRODUCED, "as claimed" + f" by more than {margin:.4g}" * bool(margin), (Condition("above", margin),)),
        Outcome(NOT_REPRODUCED, "no trend that matters, shown", inside(-margin, margin)),
        Outcome(NOT_REPRODUCED, "reversed", (Condition("below", 0.0),)),
    ]


def rule_every_seed(x: Numbers, limit: float, at_most: bool, seeds: int) -> Finding:
    """No interval: x ≤ limit (≥ for at least) in each of `seeds` seeds that were run. One that fails: not reproduced;
    one without a value, or fewer than three seeds: undecided."""
    worst = f"worst {x.max() if at_most else x.min():.4g}"
    failing = sum(not (at_least(limit, value) if at_most else at_least(value, limit)) for value in x)
    if seeds < FEWEST:
        return Finding(UNDECIDED, f"{'fails' if failing else 'holds'}, {worst}, but {few(seeds)}")
    if failing:
        return Finding(NOT_REPRODUCED, f"fails in {failing} of {len(x)} seeds, {worst}")
    if len(x) < seeds:
        return Finding(UNDECIDED, f"holds in {len(x)} seeds, but {seeds} were run, {worst}")
    return Finding(REPRODUCED, f"holds in every one of {len(x)} seeds, {worst}")


def rule_consistency(result: float, stated: float, tolerance: float, measured: bool, seeds: int) -> Finding:
    """|result − stated| ≤ tolerance: reproduced. Else contradicted by the source, or not reproduced where measured
    numbers (means over seeds) take part, of which three seeds are needed for either."""
    words = f"the expression gives {result:.6g}, stated is {stated:.6g}, tolerance {tolerance:.4g}"
    if measured and seeds < FEWEST:
        return Finding(UNDECIDED, f"{words}; {few(seeds)}")
    disagree = NOT_REPRODUCED if measured else CONTRADICTED
    return Finding(REPRODUCED if within(result, stated, tolerance) else disagree, words)


def few(seeds: int) -> str:
    return f"{seeds} seed{'s' * (seeds != 1)}: a verdict needs {FEWEST}"


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p: with p sorted upwards, the running maximum of (n − i)·p_i, i = 0, 1, …, at most 1."""
    order, adjusted = np.argsort(p, kind="stable"), np.empty(len(p))
    largest = 0.0
    for i, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - i) * p[at]))
        adjusted[at] = largest
    return [float(value) for value in adjusted]
