"""The ledger: a verdict for every published claim. One rule per kind, one number per seed.

`ci` is the 95 % bootstrap interval of the mean over seeds (intervals.py), the band is published ± tolerance.

- value: ci inside the band → reproduced; else ci satisfies `direction` → direction; else ci outside the band,
  or across its edge with the mean outside → not reproduced; with the mean inside → not tested (undecided).
- ordering: ci of the paired difference, positive where the claim holds, above `margin` → reproduced, or
  direction where a printed difference is given and ci is not inside its band; else not reproduced.
- threshold: ci on the right side of the limit (a number; or a quantity, then ci of the paired ours − limit
  against 0) → reproduced; on the wrong side → not reproduced; across → not tested. `every_seed`: no ci; one
  failing or diverged seed → not reproduced, else a seed without a value → not tested.
- trend: ci of the per-seed Spearman correlation on the claimed side of 0 → reproduced, else not reproduced.
- consistency: the paper's own numbers give the stated one within the tolerance → reproduced, else
  contradicted by the source, or not reproduced where measured numbers (means over seeds) take part.

All kinds: scale too small, or anything missing → not tested. One seed → not tested (except every_seed and
consistency). Diverged runs (flagged, or with a non-finite value) are left out and counted in the reason;
where the favoured method diverged in more than half of its runs → not reproduced; no seed left → not tested.
Measured on real data by the paper but not by us: reproduced → direction; value, and consistency of measured
numbers → not tested, because a number on a stand-in says nothing about a number on the real set.

The column `ours` is mean ± standard deviation over seeds; ci_low and ci_high bound the number that the rule uses.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.experiment import SCALES
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import evaluate
from fedrepro.evidence.intervals import Interval, at_least, difference, interval, within
from fedrepro.evidence.quantities import Measured, Quantity, Untested, label, measure, number_of, spread
from fedrepro.files import write_atomically

COLUMNS = [
    *("claim", "study", "source", "kind", "statement", "published", "ours", "ci_low", "ci_high"),
    *("verdict", "reason", "data", "scale", "seeds"),
]
VERDICTS = ("reproduced", "direction", "not reproduced", "contradicted by the source", "not tested")
REPRODUCED, DIRECTION, NOT_REPRODUCED, CONTRADICTED, NOT_TESTED = VERDICTS
DATA = ("real", "synthetic", "standin")  # a claim over several tables carries the last of these that occurs
Finding = tuple[str, str]  # verdict, reason
Claim = dict[str, Any]
Tidy = dict[str, pd.DataFrame]  # "study/experiment" → tidy table


def rule_value(ci: Interval, published: float, tolerance: float, direction: dict[str, float]) -> Finding:
    """`direction` is {}, {above: x} or {below: x}."""
    band = f"{published:.4g} ± {tolerance:.4g}"
    if ci.inside(published, tolerance):
        return REPRODUCED, f"{ci}, within {band}"
    for side, limit in direction.items():
        if ci.above(limit) if side == "above" else ci.below(limit):
            return DIRECTION, f"{ci}, not within {band} but {side} {limit:.4g}"
    if ci.above(published + tolerance) or ci.below(published - tolerance):
        return NOT_REPRODUCED, f"{ci}, outside {band}"
    if not within(ci.mean, published, tolerance):
        return NOT_REPRODUCED, f"{ci}, reaches {band} but its mean is outside"
    return NOT_TESTED, f"undecided: {ci}, too wide: its mean is within {band} but its ends are not"


def rule_ordering(ci: Interval, margin: float, published: float | None, tolerance: float) -> Finding:
    """`ci` of the advantage of the better method; `published`, its printed size, may be None."""
    if ci.above(margin):
        agrees = published is None or ci.inside(published, tolerance)
        band = "" if published is None else f", {'' if agrees else 'not '}within {published:.4g} ± {tolerance:.4g}"
        return REPRODUCED if agrees else DIRECTION, f"advantage: {ci}, above {margin:.4g}{band}"
    if ci.below(0.0):
        return NOT_REPRODUCED, f"reversed: advantage {ci}"
    words = f"not above the margin {margin:.4g}" if ci.above(0.0) else "no difference seen"
    return NOT_REPRODUCED, f"{words}: advantage {ci}"


def rule_threshold(ci: Interval, limit: float, at_most: bool) -> Finding:
    """`ci` of ours and the limit, or of ours − limit and 0."""
    words = f"{'at most' if at_most else 'at least'} {limit:.4g}"
    if at_least(limit, ci.high) if at_most else at_least(ci.low, limit):
        return REPRODUCED, f"{ci}, {words}"
    if ci.above(limit) if at_most else ci.below(limit):
        return NOT_REPRODUCED, f"{ci}, not {words}"
    return NOT_TESTED, f"undecided: {ci}, lies across {limit:.4g}"


def rule_every_seed(x: np.ndarray, limit: float, at_most: bool, seeds: int) -> Finding:
    """`x`: the numbers of the seeds that have one, out of `seeds` that were run."""
    words = f"{'at most' if at_most else 'at least'} {limit:.4g}, worst {x.max() if at_most else x.min():.4g}"
    failing = sum(not (at_least(limit, value) if at_most else at_least(value, limit)) for value in x)
    if failing:
        return NOT_REPRODUCED, f"fails in {failing} of {len(x)} seeds: {words}"
    if len(x) < seeds:
        return NOT_TESTED, f"undecided: holds in {len(x)} seeds, but {seeds} were run: {words}"
    return REPRODUCED, f"holds in every one of {len(x)} seeds: {words}"


def rule_trend(ci: Interval, rising: bool) -> Finding:
    """`ci` of the rank correlation."""
    if ci.above(0.0) if rising else ci.below(0.0):
        return REPRODUCED, f"rank correlation {ci}, {'above' if rising else 'below'} 0"
    reverse = ci.below(0.0) if rising else ci.above(0.0)
    return NOT_REPRODUCED, f"{'reversed' if reverse else 'no trend seen'}: rank correlation {ci}"


def rule_consistency(result: float, stated: float, tolerance: float, measured: bool) -> Finding:
    """`result` of the expression against the `stated` number."""
    words = f"the expression gives {result:.6g}, stated is {stated:.6g}, tolerance {tolerance:.4g}"
    disagree = NOT_REPRODUCED if measured else CONTRADICTED
    return REPRODUCED if within(result, stated, tolerance) else disagree, words


def judge(claims: Claim, tables: Tidy, published: pd.DataFrame | None, scale: str) -> pd.DataFrame:
    """The ledger of one claims file, one row per claim in file order."""
    if scale not in SCALES:
        raise UserError(f"scale '{scale}' is not valid{nearest(scale, SCALES)}")
    rows = [_judge_claim(claim, claims["study"], tables, published, scale) for claim in claims["claims"]]
    return pd.DataFrame(rows, columns=COLUMNS)


def merge(ledgers: Iterable[Path], out: Path) -> None:
    """All verdicts in one ledger, each claim once."""
    rows = [frame for path in ledgers if len(frame := pd.read_csv(path))]
    merged = pd.concat(rows).drop_duplicates("claim") if rows else pd.DataFrame(columns=COLUMNS)
    write_atomically(out, merged.to_csv(index=False))


def _judge_claim(claim: Claim, study: str, tables: Tidy, published: pd.DataFrame | None, scale: str) -> dict[str, Any]:
    """One row of the ledger."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {key: claim[key] for key in ("source", "kind", "statement")}
    row |= {"claim": f"{study}/{claim['id']}", "study": study, "scale": scale, "seeds": 0}
    row |= {"ci_low": math.nan, "ci_high": math.nan}
    try:
        number, row["published"] = _printed(claim, study, published)
        needed = claim.get("min_scale", SCALES[0])
        if SCALES.index(scale) < SCALES.index(needed):
            raise Untested(f"scale {scale} is too small: needs {needed}")
        if claim["kind"] == "consistency":
            row |= _consistency(claim, number, study, tables, published)
        else:
            row |= _comparison(claim, number, study, tables)
    except Untested as reason:
        row |= {"verdict": NOT_TESTED, "reason": str(reason)}
    if claim.get("measured_on", "real") == "real" and row["data"] in DATA[1:]:
        row["reason"] += f"; on {row['data']} data, which never reproduces a number measured on real data"
        if claim["kind"] in ("value", "consistency"):
            row["verdict"] = NOT_TESTED
        elif row["verdict"] == REPRODUCED:
            row["verdict"] = DIRECTION
    if "note" in claim:
        row["reason"] += f"; {claim['note']}"
    return row


def _comparison(claim: Claim, number: Any, study: str, tables: Tidy) -> dict[str, Any]:
    """The columns of a claim decided over seeds; two quantities are paired over their common seeds."""
    first, second = _quantities(claim)
    favoured = measure(tables, study, first)
    x, ours, methods = favoured.values.to_numpy(), spread(favoured.values), [("", favoured)]
    if second:
        other = measure(tables, study, second)
        seeds = sorted(set(favoured.values.index) & set(other.values.index))
        left, right = favoured.values.loc[seeds].to_numpy(), other.values.loc[seeds].to_numpy()
        x = difference(*((right, left) if claim.get("by") == "lower" else (left, right)))
        names = label(first, second), label(second, first)
        ours = f"{names[0]} {spread(left)}, {names[1]} {spread(right)}"
        methods = [(f" of {names[0]}", favoured), (f" of {names[1]}", other)]
    ci = interval(x, f"{study}/{claim['id']}")
    verdict, reason = _decide(claim, number, x, ci, favoured)
    reason = "ours − limit: " * bool(second and "by" not in claim) + reason
    reason += "".join(method.losses(of) for of, method in methods)
    columns = {"ours": f"rank correlation {ours}" if claim["kind"] == "trend" else ours, "seeds": len(x)}
    columns |= {"ci_low": ci.low, "ci_high": ci.high, "data": _data(method for _, method in methods)}
    return columns | {"verdict": verdict, "reason": reason}


def _decide(claim: Claim, number: Any, x: np.ndarray, ci: Interval, favoured: Measured) -> Finding:
    """The conditions common to all kinds over seeds, then the kind's rule."""
    every_seed, at_most, tolerance = claim.get("every_seed"), "at_most" in claim, claim.get("tolerance", {})
    tolerance = tolerance.get("absolute", tolerance.get("relative", 0.0) * abs(number or 0.0))
    limit: Any = claim.get("at_most", claim.get("at_least"))
    limit = 0.0 if isinstance(limit, dict) else limit
    if every_seed and favoured.diverged:
        return NOT_REPRODUCED, "it must hold in every seed, and a diverged run does not"
    if favoured.seeds > 1 and 2 * favoured.diverged > favoured.runs:
        return NOT_REPRODUCED, "the method that the claim favours diverged in more than half of its runs"
    if len(x) == 0:
        return NOT_TESTED, "no seed is left to decide on"
    if every_seed:
        return rule_every_seed(x, limit, at_most, favoured.seeds)
    if len(x) == 1:
        return NOT_TESTED, f"one seed: no interval, only {x[0]:.4g}"
    match claim["kind"]:
        case "value":
            return rule_value(ci, number, tolerance, claim.get("direction", {}))
        case "ordering":
            return rule_ordering(ci, claim.get("margin", 0.0), number, tolerance)
        case "threshold":
            return rule_threshold(ci, limit, at_most)
        case _:
            return rule_trend(ci, claim["direction"] == "rising")


def _consistency(
    claim: Claim, stated: float, study: str, tables: Tidy, published: pd.DataFrame | None
) -> dict[str, Any]:
    """The columns of a claim on printed numbers, or on means of measured ones over seeds."""
    numbers, measured = {}, []
    for name, ref in claim["numbers"].items():
        if isinstance(ref, dict):
            measured.append(measure(tables, study, ref))
            if measured[-1].values.empty:
                raise Untested(f"no seed is left for '{name}'{measured[-1].losses()}")
            numbers[name] = float(measured[-1].values.mean())
        else:
            numbers[name], _ = number_of(ref, study, published)
    try:
        result = evaluate(claim["expression"], numbers)
    except ValueError as error:
        raise Untested(f"expression: {error}") from error
    verdict, reason = rule_consistency(result, stated, claim["tolerance"]["absolute"], bool(measured))
    reason += "".join(method.losses() for method in measured)
    columns = {"seeds": min((len(method.values) for method in measured), default=0), "ours": f"{result:.6g}"}
    return columns | {"data": _data(measured), "verdict": verdict, "reason": reason}


def _data(methods: Iterable[Measured]) -> str:
    """The weakest kind of data that the methods ran on; `published` without methods."""
    return max((data for method in methods for data in method.data), key=DATA.index, default="published")


def _quantities(claim: Claim) -> tuple[Quantity, Quantity | None]:
    """The favoured quantity, and the one that it is compared with, if any."""
    if claim["kind"] == "ordering":
        return claim["better"], claim["worse"]
    limit = claim.get("at_most", claim.get("at_least"))
    return claim["ours"], limit if isinstance(limit, dict) else None


def _printed(claim: Claim, study: str, published: pd.DataFrame | None) -> tuple[Any, str]:
    """The printed number that the rule needs (None: it needs none), and the column `published`."""
    ref = claim.get("published", claim.get("published_id", claim.get("stated")))
    number, text = (None, "") if ref is None else number_of(ref, study, published)
    match claim["kind"]:
        case "ordering":
            better, worse = claim["better"], claim["worse"]
            sign, by = ">" if claim["by"] == "higher" else "<", f" by {text}" * bool(text)
            text = f"{label(better, worse)} {sign} {label(worse, better)}{by}"
        case "threshold":
            ours, other = _quantities(claim)
            sign, limit = ("≤", claim["at_most"]) if "at_most" in claim else ("≥", claim["at_least"])
            text = f"{sign} {label(other, ours) if other else f'{limit:.6g}'}"
        case "trend":
            text = f"{claim['direction']} with {claim['ours']['along']}"
    return number, text
