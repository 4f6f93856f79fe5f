"""`fedrepro list|show|status|why|next`: look at studies and results without knowing snakemake. Results are read from
results/ of the checkout: the newest run first, results/reference last; `--in` names a folder. The command only reads;
`make reproduce` runs."""

import argparse
import ast
import csv
import os
import re
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fedrepro.commands.next import tell_next
from fedrepro.core import parts
from fedrepro.core.expansion import Located
from fedrepro.core.experiment import SCALES, expanded, load_artefacts, load_experiment, load_experiments, scaled
from fedrepro.core.study import Study, load_studies, study_of
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import Claim, load_claims, quantities_of
from fedrepro.files import ROOT, read_json, read_yaml
from fedrepro.report.claims import ORIGINS
from fedrepro.report.formats import interval_text, p_texts, short_number

CONFIG = ROOT / "config"
ALIVE = 120.0  # seconds since the last line of its log for which a job counts as running
LOG_LINES = 5


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fedrepro", description="Look at studies and results.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="studies, artefacts, algorithms, data sets")
    listing.add_argument("what", nargs="?", choices=sorted(LISTS))
    showing = commands.add_parser("show", help="an artefact's table or picture; an experiment's settings; a claim")
    showing.add_argument("name", help="STUDY/ARTEFACT; with --config STUDY/EXPERIMENT or STUDY/CLAIM")
    showing.add_argument(
        "--config", action="store_true", help="all values of an experiment or a claim, with their places"
    )
    showing.add_argument("--scale", help="with --config: smoke, demo, workstation or paper")
    status = commands.add_parser("status", help="what is done, running, failed")
    status.add_argument("study", nargs="*")
    chain = commands.add_parser("why", help="the chain from a claim to the data")
    chain.add_argument("claim", help="STUDY/CLAIM, as in the ledger")
    parcel = commands.add_parser("evidence", help="finished runs as an archive: export it, import one")
    parcel.add_argument("way", choices=["export", "import"])
    parcel.add_argument("archive", type=Path)
    parcel.add_argument("names", nargs="*", help="export: studies or STUDY/EXPERIMENTs (all if none)")
    parcel.add_argument("--sample", type=int, default=1, help="import: cheap runs that are trained again")
    parcel.add_argument("--data-dir", help="import: folder of real data")
    ahead = commands.add_parser("next", help="open claims of the papers, by the time it takes to decide them")
    ahead.add_argument("study", nargs="*")
    ahead.add_argument("--results", dest="folder", type=Path, help="a results folder, such as results/demo")
    for command in (showing, status, chain, parcel):
        command.add_argument("--in", dest="folder", type=Path, help="a results folder, such as results/demo")
    given = parser.parse_args(arguments)
    try:
        match given.command:
            case "list":
                lines = list_all(given.what)
            case "show" if given.config:
                lines = show_config(given.name, given.scale)
            case "show" if given.scale:
                raise UserError("--scale is possible with --config only")
            case "show":
                lines = show(given.name, given.folder)
            case "evidence":
                lines = _evidence(given)
            case "status":
                lines = tell_status(given.study, given.folder)
            case "next":
                lines = tell_next(_ledgers(given.study, given.folder))
            case _:
                lines = why(given.claim, given.folder)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except BrokenPipeError:  # `fedrepro list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _evidence(given: argparse.Namespace) -> Iterator[str]:
    from fedrepro.commands import evidence  # here: other commands start faster without

    if given.folder is None:
        raise UserError("--in is needed: the results folder to export from or import into, such as results/workstation")
    yield from evidence.main(given.way, given.archive, given.folder, given.names, given.sample, given.data_dir)


def list_all(what: str | None) -> Iterator[str]:
    for name in [what] if what else LISTS:
        yield f"{name}:"
        rows = list(LISTS[name]())
        width = max((len(first) for first, _ in rows), default=0)
        room = max(20, _width() - width - 4)
        for first, rest in rows:
            yield f"  {first:<{width}}  {rest if len(rest) <= room else f'{rest[: room - 1]}…'}"
        yield ""


def _studies() -> Iterator[tuple[str, str]]:
    for study in load_studies(CONFIG).values():
        experiments = load_experiments(CONFIG, SCALES[0], study.name)
        origins = Counter(claim.spec["origin"] for claim in _claims_of(study).values())
        claims = f"{origins['paper']} claims, {origins['printed']} on printed numbers, {origins['added']} added"
        yield study.name, f"{len(experiments)} experiments, {claims}: {study.paper}"


def _claims_of(study: Study) -> dict[str, Claim]:
    return load_claims(declared).claims if (declared := study.file("claims.yaml")) else {}


def _artefacts() -> Iterator[tuple[str, str]]:
    for study in load_studies(CONFIG).values():
        declared = study.file("artefacts.yaml")
        for name, spec in read_yaml(declared).items() if declared else ():
            yield f"{study.name}/{name}", f"{spec['title']} ({spec['source']})"


def _parts(kind: str) -> Iterator[tuple[str, str]]:
    """The parts of a kind, each with the first sentence of its module's docstring; nothing is imported."""
    for name, module in sorted(parts.modules(kind).items()):
        paragraph, *_ = (ast.get_docstring(parts.source(module)) or "").split("\n\n")
        yield name, re.split(r"(?<=[a-z]{3}\.) (?=[A-Z])", " ".join(paragraph.split()))[0]


LISTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {"studies": _studies, "artefacts": _artefacts}
LISTS |= {kind: partial(_parts, kind) for kind in ("algorithms", "datasets")}


def show(artefact: str, folder: Path | None) -> Iterator[str]:
    import pandas as pd  # here: other commands start faster without

    known = [name for name, _ in _artefacts()]
    if artefact not in known:
        raise UserError(f"artefact '{artefact}' is unknown{nearest(artefact, known)}")
    results = _folder_with(f"artefacts/{artefact}.json", folder, artefact)
    about = read_json((base := results / "artefacts" / artefact).with_suffix(".json"))
    yield f"{about['title']} ({about['source']})"
    yield f"scale {about['scale']} · data: {', '.join(about['data']) or 'none'} · {about['seeds']} seeds"
    yield ""
    table = pd.read_csv(base.with_suffix(".csv"))
    if about["kind"] == "table":
        yield table.to_string(index=False, na_rep="", float_format=lambda x: f"{x:.4g}")
    else:
        yield f"picture: {_shown(base.with_suffix('.png'))}"
        yield f"numbers: {_shown(base.with_suffix('.csv'))} ({len(table)} rows: {', '.join(table.columns)})"
    yield ""
    yield from textwrap.wrap(about["caption"], _width())


def show_config(name: str, scale: str | None) -> Iterator[str]:
    """What an experiment's files, or a claim, come to: a line per value, and at its right the file and line of it."""
    study, _, own = name.partition("/")
    path = study_of(CONFIG, study).file("claims.yaml")
    claims = load_claims(path).claims if path else {}
    experiments = expanded(CONFIG, study)
    if own not in experiments and own not in claims:
        raise UserError(f"'{name}' is no experiment and no claim{nearest(own, [*experiments, *claims])}")
    if own in experiments:
        load_experiment(CONFIG, name, scale or "paper")  # what is not valid is an error here, too
        tree = experiments[own].tree
        yield from _placed(scaled(tree, scale) if scale else tree)
    if own in claims:
        yield from ["", f"claim {name}:"] if own in experiments else []
        yield from _placed(claims[own].tree)


def _placed(tree: Located) -> Iterator[str]:
    rows = list(_settings(tree))
    width = min(max(len(setting) for setting, _ in rows), 80)
    yield from (f"{setting:<{width}}  {place}".rstrip() for setting, place in rows)


def _settings(node: Located, indent: str = "") -> Iterator[tuple[str, str]]:
    for key, child in node.value.items():
        if child.is_block and child.value:
            yield f"{indent}{key}:", ""
            yield from _settings(child, indent + "  ")
        else:
            place = child.places[0]
            file = place.file.relative_to(ROOT) if place.file.is_relative_to(ROOT) else place.file
            yield f"{indent}{key}: {child.written() or '{}'}", f"{file}:{place.line}"


def tell_status(studies: list[str], folder: Path | None) -> Iterator[str]:
    folders = [folder] if folder else [ROOT / "results" / s for s in SCALES if (ROOT / "results" / s).is_dir()]
    if not folders:
        yield "nothing has run yet: `make reproduce` starts"
    for results in folders:
        if not results.is_dir():
            raise UserError(f"{results}: there is no such folder")
        if results.name not in SCALES:
            raise UserError(f"{results}: is not the results of a scale ({', '.join(SCALES)})")
        artefacts = load_artefacts(CONFIG, experiments := load_experiments(CONFIG, results.name))
        shown = [study_of(CONFIG, study).name for study in studies] or list(load_studies(CONFIG))
        yield f"{_shown(results)}:"
        troubles: list[str] = []
        for study in shown:
            states = _training_states(results, [e for e in experiments.values() if e.study == study], troubles)
            drawn = [a for a in artefacts if a.startswith(f"{study}/")]
            made = sum((results / "artefacts" / f"{a}.json").is_file() for a in drawn)
            judged = _judged(results / "ledgers" / f"{study}.csv")
            training = ", ".join(f"{n} {state}" for state, n in states.items() if n)
            yield f"  {study:<8} training: {training} · {made} of {len(drawn)} artefacts · {judged}"
        page = results / "report" / "index.html"
        yield f"  report: {_shown(page) if page.is_file() else 'not yet'}"
        yield from troubles


def _judged(ledger: Path) -> str:
    """How many claims are reproduced: the paper's own, and counted apart the others."""
    if not ledger.is_file():
        return "not judged"
    rows = _rows(ledger)
    counts = {origin: Counter(row["verdict"] for row in rows if row["origin"] == origin) for origin in ORIGINS}
    told = (f"{found['reproduced']} of {found.total()} {origin}" for origin, found in counts.items() if found)
    return f"reproduced: {', '.join(told) or 'no claim'}"


def _training_states(results: Path, experiments: Iterable[Any], troubles: list[str]) -> dict[str, int]:
    states = dict.fromkeys(("done", "running", "failed", "stopped", "waiting"), 0)
    for job in (f"{e.id}/{algorithm}/{shard}" for e in experiments for algorithm, shard in e.jobs()):
        state, last = _training_state(results, job)
        states[state] += 1
        if state not in ("done", "waiting"):
            troubles += [f"  {state}: {job}", *(f"    {line}" for line in last)]
    return states


def _training_state(results: Path, job: str) -> tuple[str, list[str]]:
    """(state, last lines of the log) of a training job. A killed job leaves its log, and resumes later."""
    if (results / "runs" / f"{job}.json").is_file():
        return "done", []
    log = results / "logs" / "train_algorithm" / f"{job}.log"
    if not log.is_file():
        return "waiting", []
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    if lines and (lines[-1].startswith("error: ") or lines[-1].endswith(".log)")):
        return "failed", lines
    return "running" if time.time() - log.stat().st_mtime < ALIVE else "stopped", lines[-1:]


def why(claim: str, folder: Path | None) -> Iterator[str]:
    study, _, name = claim.partition("/")
    entries = _claims_of(study_of(CONFIG, study))
    if name not in entries:
        hint = nearest(name, entries) if name else f"; {study} has: {', '.join(sorted(entries))}"
        raise UserError(f"claim '{claim}' is unknown{hint}")
    results = _folder_with(f"ledgers/{study}.csv", folder, f"the ledger of {study}")
    row = next(iter(_rows_of(claim, ledger := results / "ledgers" / f"{study}.csv")), None)
    if row is None:
        raise UserError(f"{_shown(ledger)}: has no claim '{claim}': it was judged before the claim was written")
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
        yield from textwrap.wrap(told, _width(), initial_indent="    ", subsequent_indent="      ")
    named = {other["reading"] for other in readings}
    numbers = _rows_of(claim, results / "numbers" / f"{study}.csv")
    yield from _per_seed([number for number in numbers if number["reading"] not in named])
    yield f"  rule: kind {row['kind']} in config/studies/{study}/claims.yaml, verdict in {_shown(ledger)}"
    specs = [entries[name].spec, *entries[name].readings.values()]
    yield from _runs(results, study, sorted({found for spec in specs for found in quantities_of(spec)}))


def _measured(row: dict[str, str]) -> str:
    """Our number with its interval and p-values."""
    interval = interval_text(row["ci_low"], row["ci_high"])
    values = [f"{words} {value}".replace("p p", "p") for words, value in p_texts(row)]
    return " · ".join(filter(None, [f"{row['ours'] or '–'} {interval}".strip(), ", ".join(values)]))


def _told(what: str, text: str) -> Iterator[str]:
    """`what: text` in lines of the terminal's width; nothing without text."""
    if text:
        yield from textwrap.wrap(f"{what}: {text}", _width(), initial_indent="  ", subsequent_indent="    ")


def _rows(path: Path) -> list[dict[str, str]]:
    """The rows of a csv file as texts; none if it does not exist."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _rows_of(claim: str, path: Path) -> list[dict[str, str]]:
    return [row for row in _rows(path) if row["claim"] == claim]


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


def _runs(results: Path, study: str, quantities: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The runs behind (experiment, algorithm or "" for all), each down to the checksums of its data."""
    paths = (sorted(results.glob(f"runs/{study}/{e}/{algorithm or '*'}/*.json")) for e, algorithm in quantities)
    shown: set[str] = set()
    for path in dict.fromkeys(path for found in paths for path in found):
        run = read_json(path)
        yield f"run {path.relative_to(results)}"
        yield f"  seeds {run['shard']} · {run['seconds']} s · commit {run['commit'][:12]}"
        for what, key in (("config", "config"), ("code", "code"), ("split", "federation")):
            yield f"  {what:<6} {run[f'{key}_sha256']}"
        data = run["data"]
        yield f"  data   {data['sha256']} ({data['name']}, {data['kind']})"
        files = {} if data["sha256"] in shown else (data.get("found") or {}).get("files") or {}
        yield from (f"    real file {file}: {checksum}" for file, checksum in sorted(files.items()))
        shown.add(data["sha256"])


def _ledgers(studies: list[str], folder: Path | None) -> Iterator[Path]:
    """The ledgers of the studies; of all that have one if none is named."""
    for study in [study_of(CONFIG, name).name for name in studies] or load_studies(CONFIG):
        file = f"ledgers/{study}.csv"
        try:
            yield _folder_with(file, folder, f"ledger of {study}") / file
        except UserError:
            if studies:
                raise


def _folder_with(file: str, folder: Path | None, what: str) -> Path:
    """The given results folder, else the newest of results/ that has the file; the reference comes last."""
    if folder is not None:
        if (folder / file).is_file():
            return folder
        raise UserError(f"{folder}: has no {what}")
    found = [path for path in (ROOT / "results").glob("*/") if (path / file).is_file()]
    if not found:
        raise UserError(f"there is no result of {what} yet: `make reproduce ONLY={what.split()[-1]}` makes it")
    return max(found, key=lambda path: (path.name != "reference", (path / file).stat().st_mtime))


def _shown(path: Path) -> str:
    path, here = path.resolve(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


if __name__ == "__main__":
    sys.exit(main())
