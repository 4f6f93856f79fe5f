"""`fedrepro claims`: claims with their verdicts, of studies, of one verdict or of one origin."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator

from fedrepro.commands.command import Command, in_columns, ledger_arguments, ledger_rows, study_names
from fedrepro.report.claims import ORIGINS, VERDICTS
from fedrepro.report.formats import interval_text


def rows(given: Namespace) -> Iterator[dict[str, str]]:
    """The rows with the verdict and the origin that are asked for."""
    asked = {key: value for key in ("verdict", "origin") if (value := getattr(given, key)) is not None}
    return (row for row in ledger_rows(given) if asked.items() <= row.items())


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
    ledger_arguments(parser)
    parser.add_argument("--verdict", choices=list(VERDICTS), metavar="VERDICT", help=", ".join(VERDICTS))
    parser.add_argument("--origin", choices=list(ORIGINS), help="of the paper, on printed numbers, added by us")


COMMAND = Command(
    help="claims with their verdicts",
    arguments=arguments,
    run=claims,
    rows=rows,
    words=study_names,
    examples=("", "--verdict undecided --origin paper", "--json"),
)
