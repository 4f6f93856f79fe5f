"""The committed reference run: results/reference, laid out as results/<scale>, each study at one scale.

Kept per study: ledger, readings, headlines and the claims' numbers per seed, the artefacts and the runs' manifests.
A study of which only some artefacts were run is kept, too: claims on other experiments are not tested.
Tidy tables and executed notebooks are too large; the numbers are in the artefacts' csv files, pictures and verdicts on
the pages. Pictures of tables are left out, and figures have fewer colours.
"""

import io
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd
from PIL import Image

from fedrepro.core import checksums
from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import load_studies, study_of
from fedrepro.errors import UserError
from fedrepro.evidence.judging import PARTS, judge_study
from fedrepro.files import ROOT, read_json, write_atomically
from fedrepro.report.page import REFERENCE, write_report

CONFIG = ROOT / "config"
JOINT = {"ledgers": "ledger.csv", "readings": "readings.csv", "headlines": "headlines.csv"}  # folder → joint file
KEPT = (*(f"{folder}/{{}}.csv" for folder in (*JOINT, "numbers")), "artefacts/{}/*.*", "runs/{}/**/*.json")
SAME = ["claim", "scale", "data"]  # claims that agree in these are compared
#: relative difference allowed to numbers without spread over seeds: machines add in different orders
ROUNDING = 1e-3


def unknown_cost(study: str) -> str:
    """Where nobody estimates the time."""
    return ""


def keep(
    results: Path,
    studies: Sequence[str],
    reference: Path = REFERENCE,
    config: Path = CONFIG,
    cost: Callable[[str], str] = unknown_cost,
) -> None:
    """Replace the studies' part of the reference by that of `results`, a results/<scale> folder."""
    for study in studies:
        study_of(config, study)
        if not (_is_whole(results, study) or any(results.glob(f"ledgers/{study}/*.csv"))):
            raise UserError(f"{results}: there is no ledger of {study}: run it first, or some of its artefacts")
        for path in (path for pattern in KEPT for path in results.glob(pattern.format(study))):
            checksums.check(path)
    for study in studies:
        current, part = list(manifests(results, study, config)), None
        if not _is_whole(results, study):
            tables, current = finished(results, study, config)
            part = judge_study(config, study, tables, current, scales(results)[study], results)
        for pattern in KEPT:
            for old in reference.glob(pattern.format(study)):
                old.unlink()
            for path in sorted(p for p in results.glob(pattern.format(study)) if p.suffix != checksums.SEAL):
                of_table = path.suffix in (".png", ".svg") and read_json(path.with_suffix(".json"))["kind"] == "table"
                if not of_table and (path in current or not pattern.startswith("runs")):
                    _write(reference / path.relative_to(results), path.read_bytes())
        if part:
            for name, folder in PARTS.items():
                write_atomically(reference / folder / f"{study}.csv", getattr(part, name).to_csv(index=False))
        for path in sorted(p for p in results.glob(f"explain/{study}/*.*") if p.suffix != checksums.SEAL):
            _write(reference / path.relative_to(results), path.read_bytes())
    build(reference, config, cost)


def _is_whole(results: Path, study: str) -> bool:
    return (results / "ledgers" / f"{study}.csv").is_file()


def finished(results: Path, study: str, config: Path = CONFIG) -> tuple[list[Path], list[Path]]:
    """Tables of the experiments that were run to their end with today's settings, and the manifests of their jobs."""
    current = manifests(results, study, config)
    jobs = groupby(current, key=lambda path: path.parent.parent.name)  # runs/<study>/<experiment>/<algorithm>/<shard>
    by_table = {results / "tables" / study / f"{name}.parquet": list(found) for name, found in jobs}
    done = {t: own for t, own in by_table.items() if t.is_file() and all(_is_of(path, current[path]) for path in own)}
    return list(done), [path for own in done.values() for path in own]


def _is_of(manifest: Path, settings: str) -> bool:
    return manifest.is_file() and read_json(manifest).get("config_sha256") == settings


def keep_bench(
    bench: Path, reference: Path = REFERENCE, config: Path = CONFIG, cost: Callable[[str], str] = unknown_cost
) -> None:
    """Copy the tables and figures of `make bench`."""
    if not (bench / "engine.csv").is_file():
        raise UserError(f"{bench}: there is no engine.csv: run `make bench` first")
    kept = {path.name: path.read_bytes() for path in sorted(bench.iterdir())}
    shutil.rmtree(reference / "bench", ignore_errors=True)
    for name, content in kept.items():
        _write(reference / "bench" / name, content)
    build(reference, config, cost)


def _write(target: Path, content: bytes) -> None:
    write_atomically(target, with_fewer_colours(content) if target.suffix == ".png" else content)


def with_fewer_colours(png: bytes) -> bytes:
    """The picture in 256 colours: figures use a dozen and their shades, and look the same at a third of the size."""
    picture, smaller = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(smaller, "png", optimize=True)
    return smaller.getvalue()


def manifests(results: Path, study: str, config: Path = CONFIG) -> dict[Path, str]:
    """Manifest of each current training job of the study → the hash of its settings."""
    experiments = load_experiments(config, scales(results)[study], study).values()
    jobs = ((e, algorithm, shard) for e in experiments for algorithm, shard in e.jobs())
    return {results / "runs" / e.id / a / f"{shard}.json": e.job_sha256(a) for e, a, shard in jobs}


def build(reference: Path = REFERENCE, config: Path = CONFIG, cost: Callable[[str], str] = unknown_cost) -> None:
    """The joint ledger, readings and headlines, the registers and the page, from the kept files. Other studies stand on
    the page as not run yet, with their `cost`."""
    there = [study for study in load_studies(config) if (reference / "ledgers" / f"{study}.csv").is_file()]
    for folder, name in JOINT.items():
        files = [path for study in there if (path := reference / folder / f"{study}.csv").is_file()]
        if files:
            write_atomically(reference / name, pd.concat(map(read_texts, files)).to_csv(index=False))
    folders = {study.name: study.folder for study in load_studies(config).values() if study.headlines}
    waiting = {folder: cost(study) for study, folder in folders.items() if study not in there}
    own = [config / "studies" / study for study in there]
    write_report(reference, own, scale="reference", reference=None, waiting=waiting)
    checksums.list_all(reference)


def read_texts(path: Path) -> pd.DataFrame:
    """A csv file as texts: what is not changed is written as it was."""
    return pd.read_csv(checksums.check(path), dtype=str, keep_default_na=False)


def differences(fresh: pd.DataFrame, reference: pd.DataFrame) -> Iterator[str]:
    """One line per claim that both ledgers have, at the same scale and on the same kind of data, and that differs;
    readings count as claims. Verdict, evidence and origin must be the same. The number of a `value` must lie within
    the half-width of the reference's interval (its noise over seeds), or within ROUNDING where there is none; of other
    kinds only the verdict counts, as times differ between machines."""
    for row in fresh.merge(reference, on=SAME, suffixes=("", "_kept")).itertuples():
        numbers = _number(row.ours), _number(row.ours_kept)
        if row.verdict != row.verdict_kept:
            yield f"{row.claim}: {row.verdict}, was {row.verdict_kept} (ours {row.ours}, was {row.ours_kept})"
        elif row.kind == "value" and not _close(*numbers, _number(row.ci_low_kept), _number(row.ci_high_kept)):
            yield f"{row.claim}: ours is {row.ours}, was {row.ours_kept}"
        for name in ("evidence", "origin"):
            if (now := getattr(row, name)) != (was := getattr(row, f"{name}_kept")):
                yield f"{row.claim}: {name} is '{now}', was '{was}'"


def _number(text: str) -> float:
    """The number at the start of a cell (`0.5 ± 0.1`); NaN without one."""
    try:
        return float(text.split()[0])
    except (IndexError, ValueError):
        return math.nan


def _close(fresh: float, kept: float, low: float, high: float) -> bool:
    if math.isnan(fresh) or math.isnan(kept):
        return math.isnan(fresh) and math.isnan(kept)
    half_width = (high - low) / 2 if high > low else 0.0  # NaN without an interval
    return abs(fresh - kept) <= max(half_width, ROUNDING * abs(kept))


def missing(results: Path, reference: Path, studies: Sequence[str]) -> Iterator[str]:
    """Artefacts of the reference that a fresh run of the studies lacks, or has with other columns."""
    for kept in sorted(path for study in studies for path in reference.glob(f"artefacts/{study}/*.csv")):
        name = kept.relative_to(reference)
        if not (results / name).is_file():
            yield f"{name}: is missing"
        elif list(pd.read_csv(results / name, nrows=0)) != list(pd.read_csv(kept, nrows=0)):
            yield f"{name}: has other columns"


def check(results: Path, reference: Path = REFERENCE) -> tuple[str, list[str]]:
    """(one sentence on what was compared, one line per difference)."""
    if not (results / "ledger.csv").is_file():
        raise UserError(f"{results}: no ledger to compare: run `make reproduce` first")
    if (reference / checksums.LISTING).is_file():
        for path, why in checksums.wrong(reference):
            raise UserError(f"{path}: {why}")
    fresh, kept = (read_texts(folder / "ledger.csv") for folder in (results, reference))
    same = fresh.merge(kept, on=SAME)
    told = (
        f"{len(same)} of {len(fresh)} claims were compared; the others were run at another scale or on other data than "
        f"the reference ({', '.join(sorted(f'{s} {g}' for s, g in set(zip(kept.study, kept.scale, strict=True))))})"
    )
    new = [f"{claim}: is not in the reference" for claim in sorted(set(fresh["claim"]) - set(kept["claim"]))]
    found = [*differences(fresh, kept), *differences(*map(_readings, (results, reference)))]
    found += [*_headlines(results, reference, same), *missing(results, reference, sorted(set(fresh["study"])))]
    return told, found + new


def _readings(results: Path) -> pd.DataFrame:
    """The other readings of the claims, each under the name of claim and reading."""
    if not (results / "readings.csv").is_file():
        return pd.DataFrame(columns=[*SAME, "verdict", "ours", "kind", "evidence", "origin", "ci_low", "ci_high"])
    rows = read_texts(results / "readings.csv")
    return rows.assign(claim=rows["claim"] + " (" + rows["reading"] + ")")


def _headlines(results: Path, reference: Path, same: pd.DataFrame) -> Iterator[str]:
    """Headlines with another verdict than in the reference, of those whose claims were all compared."""
    files = [folder / "headlines.csv" for folder in (results, reference)]
    if not all(file.is_file() for file in files):
        return
    fresh, kept = map(read_texts, files)
    compared = set(same["claim"])
    for row in fresh.merge(kept, on=["study", "headline"], suffixes=("", "_kept")).itertuples():
        claims = {name if "/" in name else f"{row.study}/{name}" for name in row.claims.split()}
        if row.verdict != row.verdict_kept and claims <= compared:
            yield f"headline {row.study}/{row.headline}: {row.verdict}, was {row.verdict_kept}"


def size(reference: Path = REFERENCE) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in reference.rglob("*") if path.is_file())


def scales(reference: Path = REFERENCE) -> dict[str, str]:
    """Study → the scale of its results."""
    return {a["study"]: a["scale"] for a in map(read_json, reference.glob("artefacts/*/*.json"))}
