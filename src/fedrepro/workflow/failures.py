"""Failed runs: failures.json, and a report of the finished results with what is missing and why.

After a failure the other jobs continue (`keep-going`), but the report's never starts; it is built at the end.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.files import write_json

LOG_LINES = 30


def forget(results: Path) -> None:
    """Delete the previous run's failures.json."""
    (results / "failures.json").unlink(missing_ok=True)


def describe(failed: Iterable[Any], waiting: Iterable[Any], dag: Any) -> list[dict[str, Any]]:
    """Snakemake's failed jobs, also those in a group, as records: rule, message, end of the log, and the jobs that did
    not run because of it."""
    waiting = set(waiting)
    records = []
    for job in (job for one in failed for job in (_culprits(one) if one.is_group() else [one])):
        after = [other for other in dag.bfs(dag.depending, job) if other in waiting and other is not job]
        records.append(
            {
                "rule": job.rule.name,
                "job": _message(job),
                "log": [str(path) for path in job.log],
                "log_tail": [line for path in job.log for line in _end_of(Path(str(path)))],
                "not_run": sorted(_message(other) for other in after),
            }
        )
    return sorted(records, key=lambda record: record["job"])


def report(layout: Any, records: list[dict[str, Any]]) -> Path | None:
    """Write failures.json and the page of the finished results; None if the page itself failed."""
    results = Path(layout.results)
    write_json(results / "failures.json", records)
    if any(record["rule"] == "build_report" for record in records):
        return None
    from fedrepro.core.checksums import seal
    from fedrepro.evidence.ledger import merge  # here: only failed runs need them
    from fedrepro.report.page import write_report

    not_run = {message for record in records for message in (*record["not_run"], record["job"])}
    ledgers = {path: path.relative_to(results / "ledgers").with_suffix("") for path in map(Path, layout.ledgers)}
    judged = [path for path, name in ledgers.items() if f"judge {name}" not in not_run and path.exists()]
    for other in (None, "readings", "headlines"):
        merge(judged, results / f"{other or 'ledger'}.csv", other)
    page = write_report(results, [layout.declared[s].folder for s in layout.chosen_studies], scale=layout.scale)
    joint = ("ledger.csv", "readings.csv", "headlines.csv", "assumed.json", "errata.json", "studies.json")
    seal([*sorted(page.parent.glob("*.html")), *(results / name for name in joint)])
    return page


def _culprits(group: Any) -> list[Any]:
    """Of the jobs that a cluster ran together, those that began and did not finish; all unfinished if none began."""
    unfinished = [job for job in group.jobs if not all(Path(str(file)).exists() for file in job.output)]
    return [job for job in unfinished if any(Path(str(path)).exists() for path in job.log)] or unfinished


def _message(job: Any) -> str:
    return str(job.message or job.rule.name)


def _end_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:] if log.exists() else []
