"""`fedrepro claims`: claims with their verdicts, of studies, of one verdict or of one origin."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from fedrepro.commands.command import (
    Command,
    folder_argument,
    in_columns,
    ledgers,
    read_rows,
    studies_argument,
    study_names,
)
from fedrepro.report.claims import ORIGINS, VERDICTS
from fedrepro.report.formats import interval_text


def rows(given: Namespace) -> Iterator[dict[str, str]]:
    """The rows of the ledgers that are asked for."""
    for row in (row for path in ledgers(given.study, given.folder) for row in read_rows(path)):
        asked = {"verdict": given.verdict, "origin": given.origin}
        if all(value is None or row[key] == value for key, value in asked.items()):
            yield row


def claims(given: Namespace) -> Iterator[str]:
    found = list(rows(given))
    yield from in_columns((r["claim"], _sign(r["verdict"]), r["origin"], _ours(r), r["statement"]) for r in found)
    counts = Counter(row["verdict"] for row in found)
    yield f"{len(found)} claims" + "".join(f", {counts[v]} {v}" for v in VERDICTS if counts[v])


def _sign(verdict: str) -> str:
    return f"{VERDICTS[verdict][1]} {verdict}"


def _ours(row: dict[str, str]) -> str:
    """Our number with its interval; texts are cut: `fedrepro why` has them whole."""
    told = f"{row['ours']} {interval_text(row['ci_low'], row['ci_high'])}".strip()
    return told if len(told) <= 40 else f"{told[:39]}…"


def arguments(parser: ArgumentParser) -> None:
    studies_argument(parser)
    parser.add_argument("--verdict", choices=list(VERDICTS), metavar="VERDICT", help=", ".join(VERDICTS))
    parser.add_argument("--origin", choices=list(ORIGINS), help="of the paper, on printed numbers, added by us")
    folder_argument(parser)


COMMAND = Command(
    help="claims with their verdicts",
    arguments=arguments,
    run=claims,
    rows=rows,
    words=study_names,
    examples=("", "--verdict undecided --origin paper", "--json"),
)
