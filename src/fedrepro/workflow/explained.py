"""Explanations: choose the settings that a budget allows, run the alternatives through the workflow, write the answer.

Every alternative is run alone; then pairs of alternatives of the two assumptions that move the claim's number most.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.core.alternatives import Alternative
from fedrepro.core.checksums import SEAL, check, seal
from fedrepro.core.experiment import SCALES, Experiment
from fedrepro.errors import UserError, nearest
from fedrepro.evidence import explanations
from fedrepro.evidence.assumptions import value_text
from fedrepro.evidence.explanation import Number, Outcome, answer, as_record, outcome, reading, strongest
from fedrepro.evidence.power import told
from fedrepro.evidence.quantities import Untested
from fedrepro.evidence.trials import amount
from fedrepro.files import write_atomically, write_json
from fedrepro.report.plotting import save
from fedrepro.report.tornado import tornado
from fedrepro.workflow.call import snakemake
from fedrepro.workflow.costs import core_rate, training_jobs
from fedrepro.workflow.counts import OTHER_JOBS
from fedrepro.workflow.explaining import MAIN, Question

PAIRED = 2  # assumptions, those that move the number most
START = 8.0  # seconds: two starts of the workflow


@dataclass(frozen=True)
class Plan:
    """A question at the chosen scale, its alternatives, those that the scale rules out, and the cost in words."""

    question: Question
    alternatives: tuple[tuple[str, Alternative], ...]  # our value, alternative
    ruled_out: tuple[tuple[str, Alternative, str], ...]  # and the setting that the scale sets
    short: tuple[str, ...]  # settings that keep the scale from judging the claim
    words: str


def questions(
    config: Path, results: Path, claim: str, divergence: Mapping[str, float], scale: str | None
) -> list[Question]:
    """The claim at the scale, or at every scale: those that judge it first, the cheaper before the dearer; then the
    others, the larger before the smaller."""
    if scale and scale not in SCALES:
        raise UserError(f"--scale: '{scale}' is unknown{nearest(scale, SCALES)}")
    found = [Question(config, results, claim, s, divergence) for s in SCALES if scale in (None, s)]
    judging = [question for question in found if not question.shortfalls()]
    return [*judging, *(question for question in reversed(found) if question not in judging)]


def choose(asked: Iterable[Question], budget: float, cores: int) -> Plan:
    """The first whose cost fits the budget; a single one whatever it costs."""
    asked, rate, plans = list(asked), core_rate(), []
    for question in asked:
        short = tuple(question.shortfalls())
        every = [(one.value, a) for one in question.assumptions for a in one.alternatives()]
        ruled = tuple((v, a, key) for v, a in every if (key := question.held(a)))
        free = tuple((v, a) for v, a in every if not question.held(a))
        cost, jobs, known = _cost(question, [a for _, a in free], rate)
        cost /= cores
        words = f"at {question.scale}, {_judging(short)}: {len(free)} alternatives alone, then pairs of the two"
        words += f" assumptions that move the number most; {jobs} training jobs at most, {told(cost)} on {cores} cores"
        words += "" if known else " (a guess: it never ran here)"
        plans.append((cost, Plan(question, free, ruled, short, words)))
        if free and (cost <= budget or len(asked) == 1):
            return plans[-1][1]
    least = min((cost for cost, plan in plans if plan.alternatives), default=None)
    if least is None:
        raise UserError("every alternative is of a setting that the scale sets itself: choose another --scale")
    raise UserError(f"no scale fits the budget of {told(budget)}: the cheapest takes {told(least)}")


def _judging(short: Iterable[str]) -> str:
    lacking = ", ".join(short)
    return f"which does not judge the claim ({lacking})" if lacking else "which judges the claim"


def _cost(question: Question, alternatives: list[Alternative], rate: float) -> tuple[float, int, bool]:
    """(seconds of work, training jobs, whether all ran here before) of what is not there yet. A pair costs as much as
    the dearest alternative, and there are as many as the longest two lists of values allow."""
    seconds, jobs, known, costs = START, 0, True, []
    for alternative in [MAIN, *alternatives]:
        missing = [e for e in _experiments(question, alternative) if not _there(question, e)]
        like = [replace(e, name=e.name.partition("__")[0]) for e in missing]  # the original's pace
        found = list(training_jobs(question.results, like, rate))
        costs.append(
            sum(job.seconds for job in found)
            + (2 * OTHER_JOBS["prepare_data"] + OTHER_JOBS["collect_metrics"]) * len(missing)
        )
        jobs += len(found)
        known = known and all(job.measured for job in found)
    counts: dict[tuple[str, ...], int] = {}
    for alternative in alternatives:
        counts[alternative.keys] = counts.get(alternative.keys, 0) + 1
    first, second = [*sorted(counts.values(), reverse=True), 0, 0][:PAIRED]
    pairs = first * second
    return seconds + sum(costs) + pairs * max(costs[1:], default=0.0), jobs + pairs * len(question.raw), known


def _experiments(question: Question, alternative: Alternative) -> Iterator[Experiment]:
    for name in question.raw:
        if alternative is MAIN or name in alternative.changes:
            yield question.experiment(name, alternative.changes.get(name, {}))


def _there(question: Question, e: Experiment) -> bool:
    return all((question.folder / "runs" / e.id / a / f"{shard}.parquet").is_file() for a, shard in e.jobs())


def run(plan: Plan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Run everything, and the explanation as a record. options: of the call of the workflow."""
    question, begin = plan.question, time.monotonic()
    _make(question, [MAIN, *(a for _, a in plan.alternatives)], options)
    if lacking := [path for path in question.runs(MAIN) if not path.is_file()]:
        raise UserError(f"the main run failed: there is no {lacking[0]}")
    main = question.number(MAIN)
    singles = [_outcome(question, value, a, main) for value, a in plan.alternatives]
    keys = strongest(singles)[:PAIRED]
    of = [[(value, a) for value, a in plan.alternatives if a.keys == (key,)] for key in keys]
    both = [(f"{v} | {w}", a.with_(b)) for (v, a), (w, b) in itertools.product(*of)] if len(of) == PAIRED else []
    _make(question, [a for _, a in both], options)
    pairs = [_outcome(question, value, a, main) for value, a in both]
    ruled = [
        Outcome(a.keys, value, _text(a), not_run=f"{question.scale} sets {key} itself")
        for value, a, key in plan.ruled_out
    ]
    fixed = [{"key": a.key, "value": a.value, "because": a.because} for a in question.assumptions if not a.also]
    target = _target(question)
    seeds = f"{main.seeds} seed{'s' * (main.seeds != 1)}"
    return {
        "kind": "explanation",
        "claim": question.claim,
        "scale": question.scale,
        "judges": not plan.short,
        "said": f"{seeds} at {question.scale}, {_judging(plan.short)}",
        "answer": answer(main, target["printed"], [*singles, *ruled], pairs),
        "reading": reading(main.verdict, [*singles, *ruled], pairs),
        "target": target,
        "main": as_record(main),
        "alternatives": [as_record(one) for one in (*singles, *ruled)],
        "pairs": [as_record(one) for one in pairs],
        "fixed": fixed,
        "settings": {f"{e.id}/{a}": e.job_sha256(a) for e in _experiments(question, MAIN) for a, _ in e.jobs()},
        "minutes": round((time.monotonic() - begin) / 60, 1),
    }


def _make(question: Question, alternatives: Iterable[Alternative], options: Mapping[str, Any]) -> None:
    """Train what is not there. A failed alternative leaves no file."""
    alternatives = list(alternatives)
    folders = list(dict.fromkeys(f for a in alternatives for f in question.write(a)))
    targets = dict.fromkeys(str(path) for a in alternatives for path in question.runs(a))
    config = {"scale": question.scale, "results": str(question.results), "variants": folders, **options["config"]}
    if targets:
        snakemake(list(targets), config, profile=options["profile"], cores=options["cores"], capture=False)


def _outcome(question: Question, value: str, alternative: Alternative, main: Number) -> Outcome:
    other = _text(alternative)
    if not all(path.is_file() for path in question.runs(alternative)):
        return Outcome(alternative.keys, value, other, not_run="its run failed")
    return outcome(alternative.keys, value, other, main, question.number(alternative))


def _text(alternative: Alternative) -> str:
    """The other value; of several settings with one value, that value once. Those of a pair are divided by ` | `."""
    others = alternative.other if len(alternative.keys) > 1 else [alternative.other]
    texts = []
    for other in others:
        values = {value_text(value) for value in other.values()} if isinstance(other, dict) else set()
        texts.append(values.pop() if len(values) == 1 else value_text(other))
    return " | ".join(texts)


def _target(question: Question) -> dict[str, Any]:
    """What reproduces the claim, as far as it is a band or a limit, for the figure and for words."""
    spec, label, printed = question.spec, question.claim, ""
    band: tuple[float | None, float | None] = (None, None)
    try:
        if spec["kind"] == "value":
            stated = question.printed.number(spec["published"])
            tolerance = amount(spec["tolerance"], stated.value)
            band, printed = (
                (stated.value - tolerance, stated.value + tolerance),
                f"{stated.value:.6g} ± {tolerance:.4g}",
            )
        elif spec["kind"] == "ordering":
            band = 0.0, 0.0
        elif spec["kind"] == "threshold":
            limit = spec["at_most" if "at_most" in spec else "at_least"]
            at = 0.0 if isinstance(limit, dict) else question.printed.number(limit).value
            band = at, at
    except Untested:
        pass
    what = {"ordering": "advantage", "trend": "rank correlation"}.get(
        spec["kind"], spec.get("ours", {}).get("metric", "")
    )
    return {"low": band[0], "high": band[1], "label": f"{label}: {what}", "printed": printed}


def write(question: Question, record: Mapping[str, Any]) -> Path:
    """The record, its figure, and the ledgers' column `reading` beside it; returns the record's path."""
    path = explanations.path_of(question.folder, question.claim)
    figure = tornado(record)
    write_json(path, dict(record))
    for kind in ("svg", "png"):
        write_atomically(path.with_suffix(f".{kind}"), save(figure, kind))
    seal([path, path.with_suffix(".svg"), path.with_suffix(".png")])
    study = question.study.name
    ledgers = [*question.folder.glob(f"ledgers/{study}.csv"), *question.folder.glob(f"ledgers/{study}/*.csv")]
    for ledger in [*ledgers, *question.folder.glob("ledger.csv")]:
        rows = pd.read_csv(check(ledger), dtype=str, keep_default_na=False)
        found = explanations.completed(rows, {question.claim: record})
        others = rows["claim"] != question.claim
        write_atomically(
            ledger, found.assign(reading=found["reading"].where(~others, rows["reading"])).to_csv(index=False)
        )
        if ledger.with_suffix(SEAL).exists():
            seal([ledger])
    return path
