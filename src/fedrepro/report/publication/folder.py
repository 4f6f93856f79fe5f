"""A published folder: results, code and metadata, written completely or not at all.

ro-crate-metadata.json   the Workflow Run RO-Crate: run, files, verdicts
README.md  .zenodo.json  SHA256SUMS
results/                 report, ledger, headlines, readings, numbers, artefacts, manifests, as in results/<scale>
code/                    the Snakefile, the package, config and the lock, as they are now
croissant/<data set>.json
"""

import csv
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from fedrepro import __version__
from fedrepro.core import checksums, outside, parts
from fedrepro.core.study import Study, load_studies
from fedrepro.data.catalogue import catalogue
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.provenance import commit
from fedrepro.files import INSTALLED, ROOT, check_writable, read_json, sha256, write_atomically, write_json
from fedrepro.report import reference
from fedrepro.report.page import REFERENCE, write_report
from fedrepro.report.publication import croissant, zenodo
from fedrepro.report.publication.crate import CODE, CROISSANT, METADATA, RESULTS, About, write_crate
from fedrepro.report.publication.verdicts import Sources

ZENODO = ".zenodo.json"
TABLES = ("ledger.csv", "readings.csv", "headlines.csv")  # of all studies, with a column `study`
REGISTERS = ("studies.json", "assumed.json", "errata.json")
WHOLE = (*TABLES, *REGISTERS, "report/*.html", "notebooks/overview.html", "bench/*.*")
OF_A_STUDY = (
    *(f"{kind}/{{}}{end}" for kind in ("ledgers", "readings", "headlines", "numbers") for end in (".csv", "/*.csv")),
    *("artefacts/{}/*.*", "explain/{}/*.*", "runs/{}/**/*.json", "notebooks/{}.html"),
)
#: of a checkout; an installed package carries those of them that the workflow needs
SOURCES = (
    *("Snakefile", "Makefile", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CITATION.cff"),
    *("config", "workflow", "scripts", "notebooks", "envs", "src"),
)


class Published(NamedTuple):
    """What was written."""

    folder: Path
    files: int
    verdicts: int
    commit: str


def publish(results: Path, target: Path, only: Sequence[str] = (), *, replace: bool = False) -> Published:
    """Write the results of some studies, or of all that have a ledger, as one folder."""
    if not (results / "ledger.csv").is_file():
        raise UserError(f"{results}: has no ledger.csv: run `make reproduce` first")
    _check_target(results, target, replace)
    _check_whole(results)
    rows = {name: _rows(results / name) for name in TABLES}
    studies = _studies(results, [row["study"] for row in rows["ledger.csv"]], only)
    check_writable(target.parent)
    staged = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        verdicts = _fill(staged, results, studies, rows)
        os.chmod(staged, 0o755)
        count = sum(path.is_file() for path in staged.rglob("*"))
        _put(staged, target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return Published(target, count, verdicts, commit())


def _studies(results: Path, there: Sequence[str], only: Sequence[str]) -> dict[str, Study]:
    """The chosen studies, in the order of display."""
    for name in only:
        if name not in there:
            raise UserError(f"{results}: has no ledger of a study '{name}'{nearest(name, set(there))}")
    known = load_studies(ROOT / "config")
    for name in set(only or there) - set(known):
        raise UserError(f"{results}: has results of '{name}', whose folder is not known here: name it by --studies")
    return {name: study for name, study in known.items() if name in (only or there)}


def _check_whole(results: Path) -> None:
    """UserError if a file of the results is damaged, missing or without a checksum."""
    if wrong := list(checksums.wrong(results)):
        (path, why), others = wrong[0], f" (and {len(wrong) - 1} more files)" * (len(wrong) > 1)
        raise UserError(f"{path}: {why}{others}: nothing was published; `fedrepro verify {results}` lists it")


def _check_target(results: Path, target: Path, replace: bool) -> None:
    """UserError if the target is not free, or not a publication that is as it was written."""
    here, there = results.resolve(), target.resolve()
    if there.is_relative_to(here) or here.is_relative_to(there):
        raise UserError(f"{target}: a published folder lies neither in the results nor around them")
    if not os.path.lexists(target):
        return
    if not replace:
        raise UserError(f"{target}: exists already: `--replace` replaces it, `--to` names another")
    hidden = [path for path in target.rglob(".*") if path.name != ZENODO]
    if not (target / METADATA).is_file() or hidden or any(checksums.wrong(target)):
        raise UserError(f"{target}: is no published folder, or was changed since it was written: move it away first")


def _put(staged: Path, target: Path) -> None:
    """Give the finished folder its name; one that is there is removed only once the new one is in its place."""
    if not os.path.lexists(target):
        staged.rename(target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old.")) / target.name
    target.rename(old)
    try:
        staged.rename(target)
    except BaseException:
        old.rename(target)
        old.parent.rmdir()
        raise
    shutil.rmtree(old.parent)


def _fill(staged: Path, results: Path, studies: Mapping[str, Study], rows: Mapping[str, list[dict[str, str]]]) -> int:
    """Write everything below `staged`; the number of verdicts."""
    own = staged / RESULTS
    _copy_results(own, results, studies, rows)
    settings = _copy_code(staged, studies)
    croissant.write_all(staged / CROISSANT, catalogue())
    judged = {name: [row for row in rows[name] if row["study"] in studies] for name in TABLES}
    manifests = {
        path.relative_to(own).as_posix(): read_json(path)
        for study in studies
        for path in sorted(own.glob(f"runs/{study}/**/*.json"))
    }
    about = About(
        name=results.resolve().name,
        studies=studies,
        cited=zenodo.citation(),
        version=__version__,
        commit=commit(),
        date=datetime.now(UTC).date().isoformat(),
        ended=_ended(results),
        failed=len(read_json(failures)) if (failures := results / "failures.json").is_file() else 0,
        manifests=manifests,
        catalogue=list(catalogue()),
    )
    told = {"description": about.description, "version": about.code_version, "date": about.date}
    write_json(staged / ZENODO, zenodo.deposit(about.cited, studies.values(), **told))
    write_atomically(staged / "README.md", _readme(about))
    current = frozenset(_current(own, studies, manifests))
    sources = Sources(own, RESULTS, judged["ledger.csv"], judged["headlines.csv"], current, settings)
    write_crate(staged, about, sources)
    checksums.list_all(staged)
    with (staged / checksums.LISTING).open("a", encoding="utf-8") as listing:  # which leaves out hidden files
        listing.write(f"{sha256(staged / ZENODO)}  {ZENODO}\n")
    return len(judged["ledger.csv"]) + len(judged["headlines.csv"])


def _copy_results(
    target: Path, results: Path, studies: Mapping[str, Study], rows: Mapping[str, list[dict[str, str]]]
) -> None:
    """The studies' part of a results folder. If it is not all of it, tables, registers and report are made anew."""
    everything = {row["study"] for row in rows["ledger.csv"]} == set(studies)
    patterns = [*(pattern.format(study) for study in studies for pattern in OF_A_STUDY), *(WHOLE if everything else ())]
    for path in sorted({path for pattern in patterns for path in results.glob(pattern)}):
        if path.suffix != checksums.SEAL:
            _copy(checksums.check(path), target / path.relative_to(results))
    if everything:
        return
    for name in (name for name in TABLES if rows[name]):
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[name][0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows[name] if row["study"] in studies)
        write_atomically(target / name, text.getvalue())
    other = None if (results / checksums.LISTING).is_file() else REFERENCE
    folders = [study.folder for study in studies.values()]
    write_report(target, folders, scale=results.resolve().name, reference=other)


def _copy_code(staged: Path, studies: Mapping[str, Study]) -> dict[str, str]:
    """Copy the code; study → the place of its config folder."""
    for place, path in _code():
        _copy(path, staged / CODE / place)
    settings = {name: f"{CODE}{'' if name in outside.known() else 'config/'}studies/{name}" for name in studies}
    for name, study in studies.items():  # also one that git does not know yet
        for path in _files(study.folder):
            _copy(path, staged / settings[name] / path.relative_to(study.folder))
    return settings


def _code() -> Iterator[tuple[str, Path]]:
    """(place, file) of the code: of a checkout the files that git knows, so that nothing private goes with them."""
    if INSTALLED:
        yield from ((path.relative_to(ROOT).as_posix(), path) for path in _files(ROOT))
        package = (path for path in _files(parts.PACKAGE) if not path.is_relative_to(ROOT))
        yield from ((f"src/{path.relative_to(parts.PACKAGE.parent).as_posix()}", path) for path in package)
        return
    listed = subprocess.run(["git", "ls-files", "-z", "--", *SOURCES], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    if not any(names):  # an unpacked archive of the sources
        names = [path.relative_to(ROOT).as_posix() for part in SOURCES for path in _files(ROOT / part)]
    yield from ((name, ROOT / name) for name in names if name and (ROOT / name).is_file())


def _files(folder: Path) -> list[Path]:
    """All files below a folder, or the file itself, without hidden and compiled ones."""
    found = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    skipped = ("__pycache__", ".egg-info")
    return [p for p in found if not any(s.startswith(".") or s.endswith(skipped) for s in p.relative_to(folder).parts)]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _current(results: Path, studies: Mapping[str, Study], manifests: Mapping[str, object]) -> Iterator[str]:
    """The manifests of today's jobs: a folder may also hold runs of earlier settings."""
    scales = reference.scales(results)
    for study in studies:
        if study in scales:
            jobs = reference.manifests(results, study, ROOT / "config")
            yield from (place for path in jobs if (place := path.relative_to(results).as_posix()) in manifests)
        else:  # without artefacts the scale is not known
            yield from (place for place in manifests if place.startswith(f"runs/{study}/"))


def _ended(results: Path) -> str | None:
    """When the run ended: the time of its ledger, which is written last. Unknown of results that were copied."""
    if (results / checksums.LISTING).is_file():
        return None
    return datetime.fromtimestamp((results / "ledger.csv").stat().st_mtime, UTC).isoformat(timespec="seconds")


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with checksums.check(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _readme(about: About) -> str:
    return f"""# {about.cited["title"]} ({about.name})

{about.description}

- `results/report/index.html`: the report, which opens from the file system
- `results/ledger.csv`, `results/headlines.csv`: the verdicts
- `results/runs/`: a manifest per training job, with its settings, code, data and machine
- `code/`: the workflow, the package, the settings, and the lock of the environment
- `croissant/`: metadata of the data sets, which are not part of this folder
- `ro-crate-metadata.json`: this folder as a Workflow Run RO-Crate; every verdict is a `ClaimReview` with its evidence
- `SHA256SUMS`: `sha256sum -c SHA256SUMS` checks all files
"""
