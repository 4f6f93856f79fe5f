"""`fedrepro next`: claims of the papers that are undecided or not tested, by the time it takes to decide them. The
numbers are those of the ledger (evidence/power.py)."""

import math
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from fedrepro.commands.command import Command, in_columns, ledger_arguments, ledger_rows, study_names


class Open(NamedTuple):
    """A claim that waits for runs, and what would decide it; `seconds` may be infinite."""

    seconds: float
    claim: str
    verdict: str
    needs: str


def open_claims(judged: Iterable[Mapping[str, str]]) -> list[Open]:
    """Of the papers' own claims, the cheapest first. judged: rows of ledgers."""
    from fedrepro.evidence.power import seconds_in
    from fedrepro.evidence.verdicts import NOT_TESTED, UNDECIDED

    found = []
    for row in judged:
        if row["origin"] == "paper" and row["verdict"] in (UNDECIDED, NOT_TESTED):
            seconds = seconds_in(row["next"])
            needs = row["next"].rpartition(", about ")[0] if math.isfinite(seconds) else row["next"]
            found.append(Open(seconds, row["claim"], row["verdict"], needs or row["reason"]))
    return sorted(found)


def tell_next(given: Namespace) -> Iterator[str]:
    """One line per claim: time, claim, verdict, what would decide it."""
    from fedrepro.evidence.power import told

    claims = open_claims(ledger_rows(given))
    yield from in_columns((f"{told(one.seconds):>12}", one.claim, one.verdict, one.needs) for one in claims)
    yield summary(claims)


def rows(given: Namespace) -> Iterator[dict[str, Any]]:
    for one in open_claims(ledger_rows(given)):
        yield {**one._asdict(), "seconds": one.seconds if math.isfinite(one.seconds) else None}


def summary(claims: Iterable[Open]) -> str:
    """How many are open, and the time of all, as if no two shared a run."""
    from fedrepro.evidence.power import told
    from fedrepro.evidence.verdicts import NOT_TESTED, UNDECIDED

    claims = list(claims)
    counts = [f"{n} {v}" for v in (UNDECIDED, NOT_TESTED) if (n := sum(one.verdict == v for one in claims))]
    if not counts:
        return "no claim of the papers is open"
    known = [one.seconds for one in claims if math.isfinite(one.seconds)]
    cost = f"; at most {told(sum(known))} for {len(known)} of them" if known else ""
    return f"open claims of the papers: {', '.join(counts)}{cost}"


COMMAND = Command(
    help="open claims of the papers, by the time it takes to decide them",
    arguments=ledger_arguments,
    run=tell_next,
    rows=rows,
    words=study_names,
    examples=("", "--json"),
)
