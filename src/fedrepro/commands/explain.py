"""`fedrepro explain STUDY/CLAIM`: which assumption decides the verdict on a claim, found by running the alternatives.

Plans, prints the cost, then runs each alternative of the settings that the paper leaves open alone, and pairs of the
two that move the claim's number most, through the workflow. At the settings that judge the claim if they fit the
budget, else at the largest that do.
"""

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.commands import command
from fedrepro.commands.command import Command, shown, wrapped
from fedrepro.errors import UserError
from fedrepro.files import ROOT, read_yaml

if TYPE_CHECKING:
    from fedrepro.workflow.explaining import Question

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
BUDGET = "20min"


def seconds(text: str) -> float:
    """`90s`, `20min`, `2h` in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h)", text.strip())
    if not found:
        raise UserError(f"--budget: '{text}' is no time, such as 90s, 20min or 2h")
    return float(found[1]) * UNITS[found[2]]


def explain(given: Namespace) -> Iterator[str]:
    from fedrepro.workflow import explained

    budget, cores = seconds(given.budget), given.cores or os.cpu_count() or 1
    settings = read_yaml(ROOT / "config" / "config.yaml")
    results = given.results or Path(settings["results"])
    questions = explained.questions(command.CONFIG, results, given.claim, settings.get("divergence", {}), given.scale)
    first = questions[0]
    if not first.assumptions:
        yield f"{given.claim}: no setting that it depends on is open: the paper states all of them"
        return
    yield from _open(first)
    if not any(assumption.also for assumption in first.assumptions):
        yield "none of them has another value that a reasonable reader would take"
        return
    plan = explained.choose(questions, budget, cores)
    yield from wrapped(plan.words, "", "  ")
    if given.plan:
        return
    options: dict[str, Any] = {"profile": given.profile, "cores": given.cores}
    options["config"] = {"data_dir": given.data_dir} if given.data_dir else {}
    record = explained.run(plan, options)
    yield from told(record)
    yield f"table and figure: {shown(explained.write(plan.question, record).with_suffix('.*'))}"


def _open(question: "Question") -> Iterator[str]:
    """The open settings that the claim depends on."""
    from fedrepro.evidence.assumptions import value_text

    yield f"{question.claim} depends on {len(question.assumptions)} settings that the paper leaves open:"
    for one in question.assumptions:
        others = " or ".join(map(value_text, one.also)) or f"no other value: {one.because}"
        yield from wrapped(f"{one.key} = {one.value}: {others} ({one.why})", "  ", "    ")


def told(record: dict[str, Any]) -> Iterator[str]:
    """The answer and the table of an explanation."""
    from fedrepro.evidence.explanations import COLUMNS, table_rows

    yield from wrapped(f"{record['claim']}, {record['said']}: {record['answer']}", "", "  ")
    rows: Sequence[Sequence[str]] = [COLUMNS, *([row[column] for column in COLUMNS] for row in table_rows(record))]
    widths = [min(40, max(len(row[i]) for row in rows)) for i in range(len(COLUMNS))]
    yield from ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    yield f"reading: {record['reading']}"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("claim", help="STUDY/CLAIM, as in the ledger")
    parser.add_argument(
        "--budget", default=BUDGET, help=f"time on this machine, such as 90s, 20min, 2h (default {BUDGET})"
    )
    parser.add_argument("--plan", action="store_true", help="print the plan and its cost only")
    parser.add_argument("--scale", help="the settings to use, whatever they cost: smoke, demo, workstation or paper")
    parser.add_argument("--cores", type=int, help="default: all of this machine")
    parser.add_argument("--profile", default="local", help="of the workflow: local, slurm or generic")
    parser.add_argument("--data-dir", help="folder of real data")
    parser.add_argument("--results", type=Path, help="the folder of all scales (default: results)")


COMMAND = Command(help="which assumption decides the verdict on a claim", arguments=arguments, run=explain)
