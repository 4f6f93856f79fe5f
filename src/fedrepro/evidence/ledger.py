"""The ledger: a verdict for every claim of a study. One rule per kind (verdicts.py), one number per seed.

Each reading of a claim is judged by itself (cases.py). The main readings of a family, one table or figure, that were
tested are then corrected together by Holm; a verdict whose corrected p exceeds 5 % becomes undecided. Another reading
is corrected in place of its main one. The main reading decides; others are listed, and a flip is told in its row.

Columns. ours: mean ± standard deviation over seeds. ci_low, ci_high: the 95 % interval of the number that the rule uses
(trials.py). p: two-sided, of the verdict; p_holm: corrected; p_flip: by sign flips, from six seeds on, printed numbers
taken as exact; p_printed: of our mean against the printed one with its standard error, by Welch. hint: what a run that
cannot judge the claim points to. next: what would decide it, and the time that takes.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.core.checksums import check
from fedrepro.core.experiment import SCALES, Experiment
from fedrepro.core.study import Study
from fedrepro.errors import UserError, nearest
from fedrepro.evidence import headlines, verdicts
from fedrepro.evidence.cases import Case, Sources, judge_case
from fedrepro.evidence.claim_files import Claim, Claims, quantities_of
from fedrepro.evidence.intervals import ALPHA
from fedrepro.evidence.power import told
from fedrepro.evidence.published import Printed
from fedrepro.evidence.quantities import Measurements
from fedrepro.evidence.verdicts import FEWEST, NOT_TESTED, UNDECIDED, Finding, holm
from fedrepro.evidence.wording import our_test, paper_says
from fedrepro.files import write_atomically

VERDICTS = verdicts.VERDICTS
COLUMNS = [
    *("claim", "study", "origin", "source", "kind", "family", "statement", "paper_says", "our_test", "ours"),
    *("ci_low", "ci_high", "p", "p_holm", "p_flip", "p_printed", "verdict", "reason", "hint", "evidence"),
    *("data", "scale", "seeds", "reading", "next"),
]
NUMBER_COLUMNS = ["claim", "reading", "quantity", "seed", "value", "diverged"]


@dataclass(frozen=True)
class Judged:
    """The tables that judging makes: one row per claim, per other reading, per headline, and per number and seed."""

    ledger: pd.DataFrame
    readings: pd.DataFrame
    headlines: pd.DataFrame
    numbers: pd.DataFrame


def judge(
    claims: Claims,
    tables: Mapping[str, pd.DataFrame],
    published: pd.DataFrame | None,
    scale: str,
    *,
    manifests: Iterable[Mapping[str, Any]],
    paper: Mapping[str, Experiment],
    study: Study | None = None,
    asked: Collection[str] | None = None,
) -> Judged:
    """The verdicts on a study's claims, or on those `asked` for, in the order of the file.

    tables: tidy tables by experiment, with the manifests of their runs; paper: the study's experiments at the scale
    paper, by id; study: with its headlines, of which those are judged whose claims all are."""
    if scale not in SCALES:
        raise UserError(f"scale '{scale}' is not valid{nearest(scale, SCALES)}")
    printed, measurements = Printed(claims.study, published), Measurements(claims.study, tables, manifests)
    settings = {id.partition("/")[2]: e.spec for id, e in paper.items() if id.startswith(f"{claims.study}/")}
    sources = Sources(measurements, printed, claims.transforms, settings)
    chosen = [claim for id, claim in claims.claims.items() if asked is None or id in asked]
    main = {claim.id: judge_case(claim.spec, sources) for claim in chosen}
    families = _families(main)
    rows: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    numbers, found = [], {}
    for claim in chosen:
        about = f"{claims.study}/{claim.id}"
        readings = {name: judge_case(spec, sources) for name, spec in claim.readings.items()}
        for name, case in {"": main[claim.id], **readings}.items():
            row = _row(claim, case, families, printed) | {"claim": about, "study": claims.study, "scale": scale}
            (others if name else rows).append(row | {"reading": name})
            numbers += [(about, name, *number) for number in case.numbers]
        found[claim.id] = rows[-1]["verdict"]
        flips = {row["reading"]: row["verdict"] for row in others[len(others) - len(readings) :]}
        rows[-1]["reading"] = _stability(found[claim.id], flips)
    _plan(main, rows, tables)
    return Judged(
        pd.DataFrame(rows, columns=COLUMNS),
        pd.DataFrame(others, columns=COLUMNS),
        pd.DataFrame(_headlines(claims, study, found), columns=headlines.COLUMNS),
        pd.DataFrame(numbers, columns=NUMBER_COLUMNS),
    )


def merge(ledgers: Iterable[Path], out: Path, other: str | None = None) -> None:
    """All rows in one ledger, each claim once; with `other`, those of the tables of that name beside the ledgers."""
    paths = [beside(path, other) if other else path for path in ledgers]
    key = {"headlines": ["study", "headline"], "readings": ["claim", "reading"]}.get(other or "", ["claim"])
    frames = [pd.read_csv(check(path)) for path in paths]
    rows = [frame for frame in frames if len(frame)]
    empty = pd.DataFrame(columns=headlines.COLUMNS if other == "headlines" else COLUMNS)
    merged = pd.concat(rows).drop_duplicates(key) if rows else empty
    write_atomically(out, merged.to_csv(index=False))


def beside(ledger: Path, other: str) -> Path:
    """…/ledgers/study.csv → …/readings/study.csv; also of a single artefact, …/ledgers/study/artefact.csv."""
    parts = list(ledger.parts)
    at = len(parts) - 1 - parts[::-1].index("ledgers")
    return Path(*parts[:at], other, *parts[at + 1 :])


def _families(cases: Mapping[str, Case]) -> dict[str, dict[str, float]]:
    """Family → claim → p, of the claims that were tested."""
    found: dict[str, dict[str, float]] = {}
    for id, case in cases.items():
        if case.tested and math.isfinite(case.finding.p):
            found.setdefault(_family(case), {})[id] = case.finding.p
    return found


def _family(case: Case) -> str:
    return str(case.spec.get("family", case.spec["id"]))


def _corrected(id: str, case: Case, families: Mapping[str, Mapping[str, float]]) -> tuple[Finding, float]:
    """The finding after Holm's correction, with the claim's p in place of its main reading's; and that p."""
    found = case.finding
    if not case.tested or math.isnan(found.p):
        return found, math.nan
    family = {**families.get(_family(case), {}), id: found.p}
    p = dict(zip(family, holm(list(family.values())), strict=True))[id]
    if found.verdict != UNDECIDED and p > ALPHA:
        words = f"{found.words}; by itself p = {found.p:.2g}, not after correction for {len(family)} claims"
        return found._replace(verdict=UNDECIDED, words=words), p
    return found, p


def _row(claim: Claim, case: Case, families: Mapping[str, Mapping[str, float]], printed: Printed) -> dict[str, Any]:
    spec = case.spec
    found, p_holm = _corrected(claim.id, case, families)
    note = f"; {spec['note']}" if "note" in spec else ""
    row = {key: spec.get(key, "") for key in ("origin", "source", "kind", "statement")} | {"family": _family(case)}
    row |= {"paper_says": paper_says(spec, printed), "our_test": our_test(spec, printed), "ours": case.ours}
    row |= {"ci_low": case.low, "ci_high": case.high, "p": found.p, "p_holm": p_holm, "p_flip": found.p_flip}
    row |= {"p_printed": case.p_printed, "verdict": found.verdict, "reason": f"{found.words}{case.extra}{note}"}
    row |= {"hint": case.hint, "evidence": case.evidence, "data": case.data, "seeds": case.seeds, "next": ""}
    return row


def _stability(verdict: str, readings: Mapping[str, str]) -> str:
    """Whether the other readings have the verdict of the main one."""
    flips = [f"{name} → {other}" for name, other in readings.items() if other not in (verdict, NOT_TESTED)]
    if flips:
        return f"flips: {'; '.join(flips)}"
    untested = sum(other == NOT_TESTED for other in readings.values())
    same = 0 if verdict == NOT_TESTED else len(readings) - untested
    stable = f"stable over {same} other reading{'s' * (same != 1)}" if same else ""
    return ", ".join(filter(None, [stable, f"{untested} other not tested" if untested else ""]))


def _plan(cases: Mapping[str, Case], rows: Sequence[dict[str, Any]], run: Collection[str]) -> None:
    """Fill in what would decide the undecided and the not tested. run: the experiments that were."""
    waiting: dict[str, int] = {}
    for case, row in zip(cases.values(), rows, strict=True):
        waiting[_family(case)] = waiting.get(_family(case), 0) + (row["verdict"] == UNDECIDED)
    for case, row in zip(cases.values(), rows, strict=True):
        if row["verdict"] == UNDECIDED:
            row["next"] = _more_seeds(case, waiting[_family(case)])
        elif row["verdict"] == NOT_TESTED and (case.short or case.standin):
            seeds = max(FEWEST, case.seeds)
            missing = [f"{gap.setting} {gap.wants} (has {gap.has})" for gap in case.short]
            missing += ["real data"] * case.standin
            row["next"] = ", ".join(filter(None, [*missing, told(seeds * case.full_cost)]))
        elif row["verdict"] == NOT_TESTED:
            needed = dict.fromkeys(experiment for experiment, _ in quantities_of(dict(case.spec)))
            row["next"] = ", ".join(f"a run of {experiment}" for experiment in needed if experiment not in run)


def _more_seeds(case: Case, waiting: int) -> str:
    """`12 more seeds, about 3 min`: for 80 % power, with α shared by the family's undecided claims."""
    wanted = case.plan.seeds(ALPHA / max(1, waiting), case.seeds) if case.plan else FEWEST
    if wanted is None:
        return "no feasible number of seeds"
    more = max(1, wanted - case.seeds)
    return ", ".join(filter(None, [f"{more:,} more seed{'s' * (more != 1)}", told(more * case.cost)]))


def _headlines(claims: Claims, study: Study | None, found: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """The headlines all of whose claims have a verdict."""
    own = [id for id, claim in claims.claims.items() if claim.spec.get("origin", "paper") == "paper"]
    for headline in study.headlines.values() if study else ():
        mine = headlines.claims_of(headline, own)
        if mine and all(id in found for id in mine):
            of = {id: found[id] for id in mine}
            yield headlines.headline_row(headline, claims.study, headline.id == (study and study.main), of)
