"""`fedrepro status`: training jobs done, running and failed, artefacts made and claims judged; of each job with a
checkpoint its rounds, pace, time left, and the checkpoint's age."""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from fedrepro.commands import command
from fedrepro.commands.command import Command, folder_argument, read_rows, shown, studies_argument, study_names
from fedrepro.core.experiment import SCALES, Experiment, load_artefacts, load_experiments
from fedrepro.core.study import load_studies, study_of
from fedrepro.errors import UserError
from fedrepro.report.claims import ORIGINS

ALIVE = 120.0  # seconds since the last line of its log for which a job counts as running
LOG_LINES = 5


def status(given: Namespace) -> Iterator[str]:
    made = [command.WORK / "results" / scale for scale in SCALES]
    folders = [given.folder] if given.folder else [folder for folder in made if folder.is_dir()]
    if not folders:
        yield "nothing has run yet: `make reproduce` starts"
    for results in folders:
        if not results.is_dir():
            raise UserError(f"{results}: there is no such folder")
        if results.name not in SCALES:
            raise UserError(f"{results}: is not the results of a scale ({', '.join(SCALES)})")
        artefacts = load_artefacts(command.CONFIG, experiments := load_experiments(command.CONFIG, results.name))
        yield f"{shown(results)}:"
        troubles: list[str] = []
        for study in [study_of(command.CONFIG, name).name for name in given.study] or load_studies(command.CONFIG):
            states = _training_states(results, [e for e in experiments.values() if e.study == study], troubles)
            drawn = [a for a in artefacts if a.startswith(f"{study}/")]
            done = sum((results / "artefacts" / f"{a}.json").is_file() for a in drawn)
            judged = _judged(results / "ledgers" / f"{study}.csv")
            training = ", ".join(f"{n} {state}" for state, n in states.items() if n)
            yield f"  {study:<8} training: {training} · {done} of {len(drawn)} artefacts · {judged}"
        page = results / "report" / "index.html"
        yield f"  report: {shown(page) if page.is_file() else 'not yet'}"
        yield from troubles


def _judged(ledger: Path) -> str:
    """How many claims are reproduced: the paper's own, and counted apart the others."""
    if not ledger.is_file():
        return "not judged"
    rows = read_rows(ledger)
    counts = {origin: Counter(row["verdict"] for row in rows if row["origin"] == origin) for origin in ORIGINS}
    told = (f"{found['reproduced']} of {found.total()} {origin}" for origin, found in counts.items() if found)
    return f"reproduced: {', '.join(told) or 'no claim'}"


def _training_states(results: Path, experiments: Iterable[Experiment], troubles: list[str]) -> dict[str, int]:
    from fedrepro.workflow.job_checkpoints import progress, unfinished

    states = dict.fromkeys(("done", "running", "failed", "stopped", "waiting"), 0)
    kept = unfinished(results)
    for job in (f"{e.id}/{algorithm}/{shard}" for e in experiments for algorithm, shard in e.jobs()):
        state, last = _training_state(results, job)
        states[state] += 1
        if state not in ("done", "waiting"):
            told = [progress(*kept[job], time.time())] if job in kept else []
            troubles += [f"  {state}: {job}", *(f"    {line}" for line in [*last, *told])]
    return states


def _training_state(results: Path, job: str) -> tuple[str, list[str]]:
    """(state, last lines of the log) of a training job. A killed job leaves its log, and resumes later."""
    if (results / "runs" / f"{job}.json").is_file():
        return "done", []
    log = results / "logs" / "train_algorithm" / f"{job}.log"
    if not log.is_file():
        return "waiting", []
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    if lines and (lines[-1].startswith("error: ") or lines[-1].endswith(".log)")):
        return "failed", lines
    return "running" if time.time() - log.stat().st_mtime < ALIVE else "stopped", lines[-1:]


def arguments(parser: ArgumentParser) -> None:
    studies_argument(parser)
    folder_argument(parser)


COMMAND = Command(
    help="what is done, running, failed", arguments=arguments, run=status, words=study_names, examples=("",)
)
