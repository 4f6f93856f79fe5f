"""`fedrepro compare`: the claims and headlines on which two runs differ."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import Command, in_columns, read_rows, shown
from fedrepro.errors import UserError

KEYS = {"ledgers": "claim", "headlines": "headline"}  # folder of results → column with the name


def rows(given: Namespace) -> Iterator[dict[str, str]]:
    """One row per claim or headline that both runs judge."""
    for folder, key in KEYS.items():
        first, second = (_judged(run, folder, key) for run in (given.first, given.second))
        for name in (name for name in first if name in second):
            a, b = first[name], second[name]
            yield {
                "what": key,
                "name": name,
                **{
                    f"{column}_{which}": row.get(column, "")
                    for column in ("verdict", "ours", "scale", "data")
                    for which, row in (("first", a), ("second", b))
                },
            }


def compare(given: Namespace) -> Iterator[str]:
    found = list(rows(given))
    changed = [row for row in found if row["verdict_first"] != row["verdict_second"]]
    yield from in_columns((r["what"], r["name"], _change(r, "verdict"), _change(r, "ours")) for r in changed)
    counts = Counter(row["what"] for row in found)
    judged = ", ".join(f"{n} {what}s" for what, n in counts.items()) or "nothing"
    yield f"{shown(given.first)} and {shown(given.second)} both judge {judged}; {len(changed)} verdicts differ"


def _change(row: dict[str, str], column: str) -> str:
    first, second = row[f"{column}_first"], row[f"{column}_second"]
    return f"{first} → {second}" if first or second else ""


def _judged(run: Path, folder: str, key: str) -> dict[str, dict[str, str]]:
    """Name of each claim or headline of a run → its row."""
    files = sorted((run / folder).glob("*.csv"))
    if not files and folder == "ledgers":
        raise UserError(f"{run}: has no ledgers: it is no results folder, or nothing has been judged there")
    found = [row for file in files for row in read_rows(file)]
    return {row[key] if "/" in row[key] else f"{row['study']}/{row[key]}": row for row in found}


def arguments(parser: ArgumentParser) -> None:
    for which in ("first", "second"):
        parser.add_argument(which, type=Path, metavar="RUN", help="a results folder, such as results/demo")


COMMAND = Command(
    help="what two runs judge differently",
    arguments=arguments,
    run=compare,
    rows=rows,
    examples=("results/reference results/reference",),
)
