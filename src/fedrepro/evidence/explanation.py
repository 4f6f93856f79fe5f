"""Which assumption decides a verdict: the number of a claim under each alternative, beside that of the main run.

Every alternative is judged by the claim's own rule, against its own settings: what differs from the main run is what
the paper leaves open. `moved` is the mean of the differences to the main run, paired by seed, with its 95 % interval,
in the units of the number. `distance`: how far the number lies from what would reproduce the claim (0 or less: inside),
on the scale of the test. The family is not corrected: all alternatives of a claim are one question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.evidence.cases import Sources, judge_case
from fedrepro.evidence.intervals import Sample
from fedrepro.evidence.quantities import Untested
from fedrepro.evidence.trials import paired, quantities, trial_of
from fedrepro.evidence.verdicts import NOT_TESTED, REPRODUCED, UNDECIDED, VERDICTS

OPEN = (UNDECIDED, NOT_TESTED)


@dataclass(frozen=True)
class Number:
    """A claim's number over seeds, as its rule sees it, and the verdict."""

    verdict: str
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    distance: float = math.inf
    reason: str = ""
    seeds: int = 0
    values: pd.Series = field(default_factory=lambda: pd.Series(dtype=float), repr=False)


@dataclass(frozen=True)
class Outcome:
    """One alternative, or a pair: the assumptions that it changes, from what to what, its number, and how far that
    moved. `not_run` says why there is no number."""

    keys: tuple[str, ...]
    value: str
    other: str
    verdict: str = NOT_TESTED
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan
    moved: float = math.nan
    moved_low: float = math.nan
    moved_high: float = math.nan
    distance: float = math.inf
    reason: str = ""
    not_run: str = ""

    @property
    def name(self) -> str:
        return " with ".join(f"{key} = {other}" for key, other in zip(self.keys, self.other.split(" | "), strict=True))

    def flips(self, main: str) -> bool:
        """Whether it decides otherwise than the main run."""
        return self.verdict not in (*OPEN, main)


def number_of(spec: Mapping[str, Any], sources: Sources) -> Number:
    """Judge the main reading of a claim. What settings or data keep from judging is told as what it points to."""
    case = judge_case(spec, sources)
    verdict = case.finding.verdict
    if verdict == NOT_TESTED and case.hint.startswith("points"):
        pointed = case.hint.removeprefix("points to ").partition(":")[0]
        verdict = pointed if pointed in VERDICTS else UNDECIDED
    if spec["kind"] == "consistency":
        mean = float(case.ours) if case.ours else math.nan
        return Number(verdict, mean, mean, mean, reason=case.finding.words, seeds=case.seeds)
    try:
        measured = [sources.measurements.of(quantity) for _, quantity in quantities(spec)]
        trial = trial_of(spec, measured, sources.printed, sources.transforms)
    except Untested as reason:
        return Number(verdict, reason=str(reason))
    if not len(trial.x):
        return Number(verdict, reason=case.finding.words)
    sample = Sample.of(trial.x)
    low, high = trial.ends(sample)
    seeds = sorted(set.intersection(*(set(m.values.index) for m in measured)))
    assert len(seeds) == len(paired(measured)[0])
    away = -max(o.distance(sample.mean) for o in trial.outcomes if o.verdict == REPRODUCED)
    shown = pd.Series(np.asarray(trial.shown(trial.x), dtype=float), index=seeds)
    mean = float(trial.shown(sample.mean))
    return Number(verdict, mean, low, high, away, case.finding.words, sample.seeds, shown)


def outcome(keys: tuple[str, ...], value: str, other: str, main: Number, number: Number) -> Outcome:
    """An alternative's number beside the main run's."""
    shared = main.values.index.intersection(number.values.index)
    shift = Sample.of((number.values[shared] - main.values[shared]).to_numpy(dtype=float)) if len(shared) else None
    moved = (shift.mean, shift.low, shift.high) if shift else (number.mean - main.mean, math.nan, math.nan)
    of = (number.verdict, number.mean, number.low, number.high)
    return Outcome(keys, value, other, *of, *moved, number.distance, number.reason)


def strongest(singles: Iterable[Outcome]) -> list[str]:
    """The keys of the assumptions, by how far an alternative of theirs moves the number."""
    reach: dict[str, float] = {}
    for one in singles:
        if math.isfinite(one.moved):
            reach[one.keys[0]] = max(reach.get(one.keys[0], 0.0), abs(one.moved))
    return sorted((key for key, far in reach.items() if far > 0), key=lambda key: -reach[key])


def reading(main: str, singles: Sequence[Outcome], pairs: Sequence[Outcome]) -> str:
    """`stable`, or what the verdict hangs on."""
    alone = list(dict.fromkeys(one.keys[0] for one in singles if one.flips(main)))
    if alone:
        return f"hangs on {', '.join(alone)}"
    together = list(dict.fromkeys(" with ".join(pair.keys) for pair in pairs if pair.flips(main)))
    if together:
        return f"hangs on {', '.join(together)}"
    unclear = [one.keys[0] for one in singles if not one.not_run and one.verdict in OPEN and one.verdict != main]
    return f"stable, undecided under {', '.join(dict.fromkeys(unclear))}" if unclear else "stable"


def answer(main: Number, printed: str, singles: Sequence[Outcome], pairs: Sequence[Outcome]) -> str:
    """The finding in a sentence or two."""
    run = [one for one in (*singles, *pairs) if not one.not_run]
    if not run:
        return "no alternative could be run"
    flips = [one for one in singles if one.flips(main.verdict)] or [two for two in pairs if two.flips(main.verdict)]
    told = "; ".join(f"{one.name}: {one.verdict} ({one.mean:.4g}, {one.low:.4g} to {one.high:.4g})" for one in flips)
    if any(one.verdict == REPRODUCED for one in flips):
        return f"another reading gives it: {told}"
    if main.verdict == REPRODUCED:
        return told or f"every reading within these ranges reproduces it ({len(run)} tried)"
    near = min(run, key=lambda one: one.distance if math.isfinite(one.distance) else math.inf)
    what = "gives the printed number" if printed else "reproduces the claim"
    words = f"no reading within these ranges {what}; nearest: "
    if math.isfinite(main.distance) and main.distance <= near.distance:
        words += f"ours, {main.mean:.4g}"
    else:
        words += f"{near.name}, {near.mean:.4g} instead of {main.mean:.4g}"
    words += f" (printed {printed})" if printed else ""
    return f"{words}; {told}" if told else words


def as_record(one: Outcome | Number) -> dict[str, Any]:
    """For JSON: numbers that are not finite become None."""
    found = {key: value for key, value in asdict(one).items() if key != "values"}
    plain = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}
    return plain | ({"keys": list(one.keys)} if isinstance(one, Outcome) else {})
