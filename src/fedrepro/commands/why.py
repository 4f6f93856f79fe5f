"""`fedrepro why`: a claim's test, numbers, evidence and readings, and the chain down to the data's checksums."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrepro.commands import command
from fedrepro.commands.command import Command, folder_argument, folder_with, read_rows, shown, study_names, wrapped
from fedrepro.core.checksums import check
from fedrepro.core.study import study_of
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import Claim, load_claims
from fedrepro.files import read_json
from fedrepro.report.claim_runs import runs_behind
from fedrepro.report.formats import interval_text, p_texts, short_number


def why(given: Namespace) -> Iterator[str]:
    study, _, name = given.claim.partition("/")
    entries = claims_of(study)
    if name not in entries:
        hint = nearest(name, entries) if name else f"; `fedrepro claims {study}` lists {len(entries)}"
        raise UserError(f"claim '{given.claim}' is unknown{hint}")
    results = folder_with(f"ledgers/{study}.csv", given.folder, f"the ledger of {study}")
    yield from judged(given.claim, results)
    yield from _runs(results, runs_behind(results, study, entries[name]))


def judged(claim: str, results: Path) -> Iterator[str]:
    """What the ledger of a results folder says of a claim, with its readings and its numbers per seed."""
    study = claim.partition("/")[0]
    row = next(iter(_rows_of(claim, ledger := results / "ledgers" / f"{study}.csv")), None)
    if row is None:
        raise UserError(f"{shown(ledger)}: has no claim '{claim}': it was judged before the claim was written")
    readings = _rows_of(claim, results / "readings" / f"{study}.csv")
    yield f"{claim} ({row['source']}; origin: {row['origin']}): {row['verdict']}"
    yield from _told("paper says", row["paper_says"] or row["statement"])
    if row["paper_says"] not in ("", row["statement"]):
        yield from _told("that is", row["statement"])
    yield from _told("our test", row["our_test"])
    yield from _told("ours", _measured(row))
    yield from _told("because", row["reason"])
    evidence = (row["evidence"], f"{row['seeds'] or 0} seeds", f"{row['data']} data" * bool(row["data"]), row["scale"])
    yield from _told("evidence", " · ".join(filter(None, evidence)))
    yield from _told("hint", row["hint"])
    yield from _told("next", row["next"])
    yield from _told("readings", row["reading"])
    for other in readings:
        told = f"{other['reading']}: {other['verdict']} ({_measured(other)}); {other['reason']}"
        yield from wrapped(told, "    ", "      ")
    yield from _explained(results, claim)
    named = {other["reading"] for other in readings}
    numbers = _rows_of(claim, results / "numbers" / f"{study}.csv")
    yield from _per_seed([number for number in numbers if number["reading"] not in named])
    yield f"  rule: kind {row['kind']} in config/studies/{study}/claims.yaml, verdict in {shown(ledger)}"


def _explained(results: Path, claim: str) -> Iterator[str]:
    """The explanation of the claim in these results, else in others; without one, the command that makes it."""
    from fedrepro.evidence import explanations

    folders = [results, *sorted(path for path in results.parent.glob("*/") if path != results)]
    found = next((record for folder in folders if (record := explanations.load(folder, claim))), None)
    if found is None:
        yield from _told(
            "assumptions", f"`fedrepro explain {claim}` runs the other values of what the paper leaves open"
        )
        return
    yield from _told("assumptions", f"{found['reading']} ({found['said']}): {found['answer']}")
    for row in explanations.table_rows(found):
        texts = (row["number"], row["interval"], f"moved by {row['moved by']}" * bool(row["moved by"]), row["verdict"])
        change = f"{row['setting']} = {row['ours']} → {row['instead']}" if row["setting"] else row["instead"]
        yield from wrapped(f"{change.removesuffix(' → ')}: {' '.join(filter(None, texts))}", "    ", "      ")


def _measured(row: dict[str, str]) -> str:
    """Our number with its interval and p-values."""
    interval = interval_text(row["ci_low"], row["ci_high"])
    values = [f"{words} {value}".replace("p p", "p") for words, value in p_texts(row)]
    return " · ".join(filter(None, [f"{row['ours'] or '–'} {interval}".strip(), ", ".join(values)]))


def _told(what: str, text: str) -> Iterator[str]:
    """`what: text` in lines of the terminal's width; nothing without text."""
    if text:
        yield from wrapped(f"{what}: {text}", "  ", "    ")


def _rows_of(claim: str, path: Path) -> list[dict[str, str]]:
    return [row for row in read_rows(path) if row["claim"] == claim]


def _per_seed(numbers: list[dict[str, str]]) -> Iterator[str]:
    """A table with one line per seed and one column per quantity."""
    names = list(dict.fromkeys(number["quantity"] for number in numbers))
    by_seed: dict[str, dict[str, str]] = {}
    for number in numbers:
        value = short_number(number["value"]) or "–"
        lost = " (diverged)" * (number["diverged"].lower() in ("true", "1"))
        by_seed.setdefault(number["seed"], {})[number["quantity"]] = value + lost
    if by_seed:
        yield "  seed  " + "".join(f"{name:<22}" for name in names).rstrip()
    for seed, values in by_seed.items():
        yield f"  {seed:<6}" + "".join(f"{values.get(name, '–'):<22}" for name in names).rstrip()


def _runs(results: Path, manifests: Iterable[Path]) -> Iterator[str]:
    """The runs behind a claim, each down to the checksums of its data."""
    shown: set[str] = set()
    for path in manifests:
        run = read_json(check(path))
        yield f"run {path.relative_to(results)}"
        yield f"  seeds {run['shard']} · {run['seconds']:.3g} s · commit {run['commit'][:12]}"
        for what, key in (("config", "config"), ("code", "code"), ("split", "federation")):
            yield f"  {what:<6} {run[f'{key}_sha256']}"
        data = run["data"]
        yield f"  data   {data['sha256']} ({data['name']}, {data['kind']})"
        files = {} if data["sha256"] in shown else (data.get("found") or {}).get("files") or {}
        yield from (f"    real file {file}: {checksum}" for file, checksum in sorted(files.items()))
        shown.add(data["sha256"])


def claims_of(study: str, checked: bool = True) -> dict[str, Claim]:
    declared = study_of(command.CONFIG, study).file("claims.yaml")
    return load_claims(declared, checked).claims if declared else {}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("claim", help="STUDY/CLAIM, as in the ledger")
    folder_argument(parser)


def claim_names() -> list[str]:
    """STUDY/CLAIM of all studies."""
    return [f"{study}/{claim}" for study in study_names() for claim in claims_of(study, checked=False)]


COMMAND = Command(
    help="the chain from a claim to the data", arguments=arguments, run=why, words=claim_names, examples=("{claim}",)
)
