"""Reading the results folder, and the cost of its runs. A missing or broken file is never a crash: `problems` collects
one sentence per file that could not be read."""

import csv
import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fedrepro.core.checksums import check
from fedrepro.errors import Damaged
from fedrepro.report.formats import MAX_ROWS, as_float, as_text, duration, is_number, natural, short_numbers


def read(path: Path, root: Path, parse: Callable[[str], Any], problems: list[str]) -> Any:
    """`parse` of the file's text; None where the file is missing, or broken (then `problems` grows)."""
    if not path.is_file():
        return None
    try:
        return parse(check(path).read_text(encoding="utf-8-sig"))
    except (OSError, Damaged, ValueError, csv.Error) as error:
        problems.append(f"{path.relative_to(root).as_posix()} could not be read: {error}")
        return None


def parse_csv(text: str) -> list[list[str]]:
    """Rows of strings, without blank lines."""
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def table_of(path: Path, root: Path, problems: list[str]) -> dict[str, Any] | None:
    """{head, rows: [[(shown, exact)]], numeric: [bool per column], total} of a csv file, cut at MAX_ROWS."""
    if not (rows := read(path, root, parse_csv, problems)):
        return None
    head, total = rows[0], len(rows) - 1
    # Lines of an edited file may differ in length.
    body = [(row + [""] * len(head))[: len(head)] for row in rows[1 : MAX_ROWS + 1]]
    columns = [[row[at] for row in body] for at in range(len(head))]
    shown = zip(*map(short_numbers, columns), strict=True)
    cells = [list(zip(*line, strict=True)) for line in zip(shown, body, strict=True)]
    numeric = [any(column) and all(is_number(cell) for cell in column if cell) for column in columns]
    return {"head": head, "rows": cells, "numeric": numeric, "total": total}


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
        log = "\n".join(map(as_text, as_list(item.get("log_tail")))) or as_text(item.get("log_tail"))
        after = list(map(as_text, as_list(item.get("not_run"))))
        failures.append({"title": " · ".join(filter(None, names)) or "a job", "log": log, "not_run": after})
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


def cost_of(runs: list[dict[str, Any]], studies: list[str]) -> dict[str, Any]:
    """Time, memory and machines of the runs, by study and by (experiment, algorithm); diverged runs."""
    keys = ("experiment", "algorithm", "setting", "seed", "round")
    lost = [{**run, **item} for run in runs for item in as_dicts(run.get("diverged"))]
    diverged = [{key: as_text(item.get(key)) for key in keys} for item in lost]
    by_study = []
    for study in studies:
        if not (ours := [run for run in runs if run["study"] == study]):
            continue
        groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for run in ours:
            groups[as_text(run["experiment"]), as_text(run["algorithm"])].append(run)
        ordered = sorted(groups.items(), key=lambda item: [natural(name) for name in item[0]])
        rows = [{"experiment": e, "algorithm": a, **_row(group)} for (e, a), group in ordered]
        by_study.append({"study": study, "rows": rows, **_row(ours)})
    versions: dict[str, set[str]] = defaultdict(set)
    for name, version in (pair for run in runs for pair in as_dict(run.get("versions")).items()):
        versions[as_text(name)].add(as_text(version))
    return {
        "total": _row(runs) if runs else None,
        "studies": by_study,
        "machines": sorted(Counter(map(_machine, runs)).items()),
        "versions": [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())],
        "commits": sorted({as_text(run.get("commit")) for run in runs} - {""}),
        "diverged": diverged[:MAX_ROWS],
        "diverged_total": len(diverged),
    }


def _row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of the cost tables, for several jobs together."""
    seconds = [as_float(run.get("seconds")) for run in runs]
    seeds = {as_text(seed) for run in runs for seed in as_list(run.get("seeds"))}
    strategies = {as_text(run.get("strategy")) for run in runs} - {""}
    return {
        "jobs": len(runs),
        "seeds": len(seeds),
        "seconds": duration(sum(seconds)),
        "longest": duration(max(seconds)),
        "memory": f"{max(as_float(run.get('peak_memory_mb')) for run in runs):,.0f} MB",
        "strategy": ", ".join(sorted(strategies)) or "–",
        "steps": f"{sum(as_float(run.get('gradient_steps')) for run in runs):,.0f}",
        "diverged": sum(len(as_dicts(run.get("diverged"))) for run in runs),
        "resumed": sum(run.get("resumed_from") is not None for run in runs),
    }


def _machine(run: dict[str, Any]) -> str:
    machine = as_dict(run.get("machine"))
    cores, memory = machine.get("cores"), machine.get("memory_gb")
    device, threads = run.get("device"), run.get("threads")
    known = [
        as_text(machine.get("cpu")),
        cores and f"{as_text(cores)} cores",
        memory and f"{as_float(memory):.3g} GB memory",
        as_text(machine.get("system")),
        device and f"device {as_text(device)}",
        threads and f"{as_text(threads)} thread{'' if threads == 1 else 's'} a job",
    ]
    return ", ".join(filter(None, known)) or "not recorded"
