"""One reading of a claim, judged by itself: measured, held against its rule, its needs and its data.

Common to all kinds over seeds. Diverged runs are left out and counted; if the favoured method diverged in more than
half of its runs, the claim is not reproduced. Fewer than three seeds: undecided, unless the claim borrows the spread of
at least five seeds of another experiment (interval m ± t·s/√n with its s and df). Settings that fall short, or a
stand-in for real data: not tested, with what the run points to as a hint.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedrepro.evidence.claim_files import evaluate
from fedrepro.evidence.decisive import Gap, gaps, shortfalls
from fedrepro.evidence.decisive import evidence as evidence_of
from fedrepro.evidence.intervals import Sample, p_two_sided
from fedrepro.evidence.power import Plan, growth, seconds_per_seed
from fedrepro.evidence.published import Printed, Stated
from fedrepro.evidence.quantities import Measured, Measurements, Quantity, Untested, label, spread
from fedrepro.evidence.trials import Trial, paired, quantities, trial_of
from fedrepro.evidence.verdicts import (
    DIRECTION,
    FEWEST,
    NOT_REPRODUCED,
    NOT_TESTED,
    REPRODUCED,
    UNDECIDED,
    Finding,
    decide,
    few,
    rule_consistency,
    rule_every_seed,
)

DATA = ("real", "synthetic", "standin")  # a claim over several tables carries the last of these that occurs
FEWEST_BORROWED = 5
Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Sources:
    """What a study's claims are judged on: measured numbers with their manifests, printed numbers, the metrics' scales,
    and the settings of each experiment at the scale `paper`."""

    measurements: Measurements
    printed: Printed
    transforms: Mapping[str, str]
    paper: Mapping[str, Spec]
    _gaps: dict[tuple[str, str, str], list[Gap]] = field(default_factory=dict)

    def gaps(self, quantity: Quantity, config: Spec) -> list[Gap]:
        """Between the config of a quantity's runs and the published settings."""
        key = quantity["experiment"], quantity["algorithm"], quantity.get("setting", "all")
        if key not in self._gaps:
            self._gaps[key] = gaps(config, self.paper[quantity["experiment"]], quantity)
        return self._gaps[key]


@dataclass
class Case:
    """A judged reading. `number` rows: (role, seed, value, diverged). `cost`: seconds per seed; `full_cost`: at the
    published settings."""

    spec: Spec
    finding: Finding = field(default_factory=lambda: Finding(NOT_TESTED, ""))
    ours: str = ""
    low: float = math.nan
    high: float = math.nan
    p_printed: float = math.nan
    data: str = ""
    seeds: int = 0
    extra: str = ""  # to append to the reason
    evidence: str = ""
    short: list[Gap] = field(default_factory=list)
    standin: bool = False
    hint: str = ""
    plan: Plan | None = None
    cost: float = math.nan
    full_cost: float = math.nan
    numbers: list[tuple[str, int, float, bool]] = field(default_factory=list)

    @property
    def tested(self) -> bool:
        return self.finding.verdict != NOT_TESTED


def judge_case(spec: Spec, sources: Sources) -> Case:
    """The verdict of one reading before its family is corrected."""
    case = Case(spec)
    named = _named(spec)
    try:
        unknown = _check_settings(case, [quantity for _, quantity in named], sources)
        found = {role: sources.measurements.of(quantity) for role, quantity in named}
        case.numbers = [row for role, measured in found.items() for row in _rows(role, measured)]
        case.data = max((d for m in found.values() for d in m.data), key=DATA.index, default="published")
        if spec["kind"] == "consistency":
            _consistency(case, found, sources.printed)
        else:
            _comparison(case, list(found.values()), sources)
        if unknown:
            raise Untested(f"the settings of {unknown} are not known: there is no manifest")
    except Untested as reason:
        case.finding = Finding(NOT_TESTED, "; ".join([*map(str, case.short), str(reason)]))
    case.standin = spec.get("measured_on", "real") == "real" and case.data in DATA[1:]
    if (case.short or case.standin) and case.tested:
        _turn_into_hint(case)
    return case


def _named(spec: Spec) -> list[tuple[str, Quantity]]:
    if spec["kind"] == "consistency":
        return [(name, ref) for name, ref in spec["numbers"].items() if isinstance(ref, dict)]
    return quantities(spec)


def _rows(role: str, measured: Measured) -> Iterable[tuple[str, int, float, bool]]:
    yield from ((role, int(seed), float(value), False) for seed, value in measured.values.items())
    yield from ((role, int(seed), math.nan, True) for seed in measured.lost)


def _comparison(case: Case, measured: Sequence[Measured], sources: Sources) -> None:
    """A claim decided over seeds."""
    spec, named = case.spec, quantities(case.spec)
    numbers, trial = paired(measured), trial_of(spec, measured, sources.printed, sources.transforms)
    sample = Sample.of(trial.x)
    case.seeds, case.ours = sample.seeds, spread(numbers[0])
    names = [""]
    if len(named) == 2:
        (_, first), (_, second) = named
        names = [label(first, second), label(second, first)]
        case.ours = ", ".join(f"{name} {spread(x)}" for name, x in zip(names, numbers, strict=True))
    if spec["kind"] == "trend":
        case.ours = f"rank correlation {case.ours}"
    case.extra = "".join(m.losses(f" of {name}" if name else "") for m, name in zip(measured, names, strict=True))
    case.finding = _decided(case, trial, sample, measured[0], sources)


def _decided(case: Case, trial: Trial, sample: Sample, favoured: Measured, sources: Sources) -> Finding:
    """The conditions common to all kinds, then the kind's rule."""
    spec, every_seed = case.spec, case.spec.get("every_seed")
    if every_seed and favoured.diverged and favoured.seeds >= FEWEST:
        return Finding(NOT_REPRODUCED, "it must hold in every seed, and a diverged run does not")
    if 2 * favoured.diverged > favoured.runs:
        words = "the method that the claim favours diverged in more than half of its runs"
        decided = favoured.seeds >= FEWEST
        return Finding(NOT_REPRODUCED, words) if decided else Finding(UNDECIDED, f"{words}; {few(favoured.seeds)}")
    if sample.seeds == 0:
        return Finding(NOT_TESTED, "no seed is left to decide on")
    if every_seed:
        words = trial.outcomes[0].words
        found = rule_every_seed(trial.x, trial.limit, "at_most" in spec, favoured.seeds)
        return found._replace(words=f"{trial.what}{words}: {found.words}")
    borrowed = ""
    if sample.seeds < FEWEST and "borrow" in spec:
        sample, borrowed = _borrowed(spec, trial, sample, sources)
    case.low, case.high = trial.ends(sample)
    if sample.seeds > 1 or borrowed:
        case.plan = trial.plan(sample.se * math.sqrt(sample.seeds), sample.mean) if sample.df > 0 else None
    if sample.df < FEWEST - 1:
        return Finding(UNDECIDED, f"{trial.tell(sample)}; {few(sample.seeds)}{borrowed}")
    widened = sample.against(trial.se, trial.runs)
    found = decide(widened, trial.outcomes)
    if found.verdict == UNDECIDED:
        found = found._replace(words=f"lies across {trial.across}")
    words = f"{trial.tell(sample)}{borrowed}{_printed(case, trial, widened, sources)}: {found.words}"
    found = found._replace(words=words)
    return _sized(found, trial) if found.verdict == REPRODUCED and trial.size else found


def _borrowed(spec: Spec, trial: Trial, sample: Sample, sources: Sources) -> tuple[Sample, str]:
    """The sample with the spread of the same number of another experiment, and words on it."""
    name = spec["borrow"]["experiment"]
    lent = [{**quantity, "experiment": spec["borrow"].get(role, name)} for role, quantity in quantities(spec)]
    replaced = dict(zip((role for role, _ in quantities(spec)), lent, strict=True))
    replaced = {("at_most" if "at_most" in spec else "at_least") if r == "limit" else r: q for r, q in replaced.items()}
    try:
        other = trial_of(
            {**spec, **replaced}, [sources.measurements.of(q) for q in lent], sources.printed, sources.transforms
        )
    except Untested as reason:
        return sample, f"; no spread to borrow: {reason}"
    n, s = len(other.x), float(np.std(other.x, ddof=1)) if len(other.x) > 1 else math.nan
    if n < FEWEST_BORROWED or other.scale != trial.scale:
        return sample, f"; no spread to borrow: {n} seeds of {name}{other.scale}, {FEWEST_BORROWED} are needed"
    return sample.with_spread(s, n - 1), f", spread {s:.2g} borrowed from {n} seeds of {name}"


def _printed(case: Case, trial: Trial, widened: Sample, sources: Sources) -> str:
    """Welch's test against the printed mean, for p_printed; and words on the interval with the printed error."""
    if case.spec["kind"] != "value":
        return ""
    stated = sources.printed.number(case.spec["published"])
    if not math.isfinite(stated.se):
        return ""
    plain = Sample.of(np.asarray(trial.shown(trial.x), dtype=float))
    if math.isnan(plain.se):
        return ""
    case.p_printed = p_two_sided(plain.against(stated.se, stated.runs), stated.value)
    if not trial.se:
        return ""
    low, high = trial.ends(widened)
    return f"; with the printed standard error {stated.se:.2g} {low:.4g} to {high:.4g}"


def _sized(found: Finding, trial: Trial) -> Finding:
    """Of an ordering that holds: direction unless the interval of the plain difference, with the printed standard
    error, lies inside the printed size ± tolerance."""
    assert trial.size
    x, conditions, stated, band = trial.size
    sample = Sample.of(x).against(stated.se, stated.runs)
    inside = max(condition.p(sample) for condition in conditions) <= 0.025
    words = f"{found.words}; its size {'is' if inside else 'is not shown to be'} {band}"
    return found._replace(verdict=REPRODUCED if inside else DIRECTION, words=words)


def _consistency(case: Case, measured: Mapping[str, Measured], printed: Printed) -> None:
    """A claim on printed numbers, or on means of measured ones over seeds."""
    spec, numbers = case.spec, {}
    stated: Stated = printed.number(spec["stated"])
    for name, ref in spec["numbers"].items():
        numbers[name] = float(measured[name].values.mean()) if name in measured else printed.number(ref).value
    if lost := [name for name, m in measured.items() if m.values.empty]:
        raise Untested(f"no seed is left for '{lost[0]}'{measured[lost[0]].losses()}")
    try:
        result = evaluate(spec["expression"], numbers)
    except ValueError as error:
        raise Untested(f"expression: {error}") from error
    case.seeds, case.ours = min((len(m.values) for m in measured.values()), default=0), f"{result:.6g}"
    case.extra = "".join(m.losses() for m in measured.values())
    tolerance = spec["tolerance"]["absolute"]
    case.finding = rule_consistency(result, stated.value, tolerance, bool(measured), case.seeds)


def _check_settings(case: Case, used: Sequence[Quantity], sources: Sources) -> str:
    """The settings of the runs used against the published ones, and what a seed of them costs; the name of a run
    without a manifest, if any."""
    found: list[Gap] = []
    runs: list[Mapping[str, Any]] = []
    costs: dict[tuple[str, str], tuple[float, float]] = {}
    for quantity in used:
        arm = quantity["experiment"], quantity["algorithm"]
        manifests = sources.measurements.manifests(quantity)
        if not manifests or arm[0] not in sources.paper:
            return ", ".join(arm)
        runs += manifests
        config = manifests[0]["config"]
        seen = sources.gaps(quantity, config)
        case.short += [g for g in shortfalls(case.spec.get("needs", "all"), config, seen) if g not in case.short]
        found += seen
        each = seconds_per_seed(manifests)
        costs[arm] = each, each * growth(seen, config)
    case.evidence = evidence_of(dict.fromkeys(found)) if used else "printed numbers"
    if archives := {m["imported"]["archive_sha256"][:12] for m in runs if "imported" in m}:
        case.evidence += f"; imported from {', '.join(sorted(archives))}"
    case.cost, case.full_cost = (sum(cost[i] for cost in costs.values()) for i in range(2))
    return ""


def _turn_into_hint(case: Case) -> None:
    """Not tested, with the verdict as a hint."""
    found = case.finding
    reasons = [", ".join(map(str, case.short))] if case.short else []
    if case.standin:
        reasons.append(f"{case.data} data in place of real data")
    clear = f", p {found.p:.2g}" if math.isfinite(found.p) else ""
    span = f"interval {case.low:.4g} to {case.high:.4g}" if math.isfinite(case.low) else f"ours {case.ours}"
    towards = "points nowhere yet" if found.verdict == UNDECIDED else f"points to {found.verdict}"
    case.hint = f"{towards}: {span}{clear}"
    case.finding = Finding(NOT_TESTED, "; ".join(reasons))
