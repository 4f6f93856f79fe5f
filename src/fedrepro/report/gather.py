"""Reading the results folder; a missing or broken file is never a crash.

`problems` collects one sentence per file that could not be read.
"""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fedrepro.report.formats import MAX_ROWS, as_text, is_number, short_numbers


def read(path: Path, root: Path, parse: Callable[[str], Any], problems: list[str]) -> Any:
    """`parse` of the file's text; None where the file is missing, or broken (then `problems` grows)."""
    if not path.is_file():
        return None
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, csv.Error) as error:
        problems.append(f"{path.relative_to(root).as_posix()} could not be read: {error}")
        return None


def parse_csv(text: str) -> list[list[str]]:
    """Rows of strings, without blank lines."""
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def table_of(path: Path, root: Path, problems: list[str]) -> dict[str, Any] | None:
    """{head, rows: [[(shown, exact)]], numeric: [bool per column], total} of a csv file, cut at MAX_ROWS."""
    rows = read(path, root, parse_csv, problems)
    if not rows:
        return None
    head, total = rows[0], len(rows) - 1
    # Lines of an edited file may differ in length.
    body = [(row + [""] * len(head))[: len(head)] for row in rows[1 : MAX_ROWS + 1]]
    columns = [[row[at] for row in body] for at in range(len(head))]
    shown = [short_numbers(column) for column in columns]
    return {
        "head": head,
        "rows": [[(shown[at][line], row[at]) for at in range(len(head))] for line, row in enumerate(body)],
        "numeric": [any(column) and all(is_number(cell) for cell in column if cell) for column in columns],
        "total": total,
    }


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_dicts(value: object) -> list[dict[str, Any]]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_records(results: Path, name: str, keys: tuple[str, ...], problems: list[str]) -> list[dict[str, str]] | None:
    """A JSON list of flat records as texts; None where the file is missing or broken."""
    records = read(results / name, results, json.loads, problems)
    texts = [{key: as_text(record.get(key)) for key in keys} for record in as_dicts(records)]
    return None if records is None else texts


def read_failures(results: Path, problems: list[str]) -> list[dict[str, Any]]:
    """Jobs that failed: {title, log, not_run}."""
    failures = []
    for item in as_dicts(read(results / "failures.json", results, json.loads, problems)):
        names = [as_text(item.get("rule")), as_text(item.get("job") or item.get("wildcards"))]
        log = item.get("log_tail")
        text = "\n".join(map(as_text, log)) if isinstance(log, list) else as_text(log)
        after = list(map(as_text, as_list(item.get("not_run"))))
        failures.append({"title": " · ".join(filter(None, names)) or "a job", "log": text, "not_run": after})
    return failures


def read_manifests(results: Path, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Manifests of runs by path relative to `results`; other JSON files under runs/ are skipped."""
    manifests = {}
    for path in sorted(results.glob("runs/**/*.json")):
        manifest = as_dict(read(path, results, json.loads, problems))
        if "experiment" in manifest and "algorithm" in manifest:
            study = as_text(manifest["experiment"]).partition("/")[0]
            manifests[path.relative_to(results).as_posix()] = {**manifest, "study": study}
    return manifests


def relative_url(path: Path, folder: Path) -> str:
    """Address of `path` relative to a page in `folder`."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())
