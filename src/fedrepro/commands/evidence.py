"""`fedrepro evidence export|import`: finished training runs as one archive, for another checkout of the same code.

An archive is a zip of runs/<study>/<experiment>/<algorithm>/<shard>.{parquet,json} and evidence.json, which lists their
SHA-256. On import each run's settings, code and data are compared with this checkout's, by hash: a run that was
tampered with, or that belongs to other settings, code or data, is refused by name, and then nothing is imported. The
data is prepared here first. Of the runs that are cheap a random sample is trained again and compared. Imported runs
count like own ones; their manifests say where they come from, and so does the ledger.

With `--unfinished` the checkpoints of unfinished jobs go along, checkpoints/<name>.pt. They are compared by the hashes
in their headers, and the next run here continues from them.
"""

import contextlib
import hashlib
import io
import json
import random
import re
import stat
import tempfile
import zipfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from fedrepro.commands.command import Command, folder_argument
from fedrepro.core.checksums import check, seal
from fedrepro.core.experiment import SCALES
from fedrepro.errors import UserError, nearest
from fedrepro.files import ROOT, read_json, read_yaml, sha256, write_atomically, write_json
from fedrepro.workflow.call import snakemake

LISTING = "evidence.json"
FORMAT = 1
RUN = re.compile(r"runs/(?P<experiment>[a-z]\w*/[a-z]\w*)/(?P<algorithm>[a-z]\w*)/(?P<shard>\d+-\d+)\.(parquet|json)")
CHECKPOINT = re.compile(r"checkpoints/[0-9a-f]{32}\.pt")
LARGEST = 4 * 2**30  # bytes of an archive's content; more is a mistake or an attack
CHEAP = 60.0  # seconds of a run that may be trained again
#: relative difference allowed to a run that is trained again on another kind of machine
ROUNDING = 1e-3


class Run(NamedTuple):
    """A finished training job."""

    experiment: str
    algorithm: str
    shard: str

    def __str__(self) -> str:
        return f"{self.experiment}/{self.algorithm}/{self.shard}"

    def file(self, suffix: str) -> str:
        return f"runs/{self}.{suffix}"


def run(given: Namespace) -> Iterator[str]:
    """Export or import, from anywhere. Results inside the checkout are named as the workflow does."""
    if given.folder is None:
        raise UserError("--in is needed: the results folder to export from or import into, such as results/workstation")
    archive, results = given.archive.resolve(), given.folder.resolve()
    data_dir = str(Path(given.data_dir).resolve()) if given.data_dir else None
    with contextlib.chdir(ROOT):
        results = results.relative_to(ROOT) if results.is_relative_to(ROOT) else results
        exports = given.way == "export"
        if exports:
            yield from export(results, archive, given.names, given.unfinished)
        else:
            yield from import_(archive, results, given.sample, data_dir)


def export(results: Path, archive: Path, chosen: Sequence[str] = (), unfinished: bool = False) -> Iterator[str]:
    """Write the finished runs of a results folder (of studies or experiments, all if none are chosen), and the
    checkpoints of unfinished ones if asked."""
    layout = _layout(results)
    jobs = [Run(e.id, a, shard) for e in layout.experiments.values() for a, shard in e.jobs()]
    names = {name for job in jobs for name in (job.experiment, job.experiment.split("/")[0])}
    for name in chosen:
        if name not in names:
            raise UserError(f"'{name}' is no study and no experiment{nearest(name, names)}")
    wanted = [j for j in jobs if not chosen or {j.experiment, j.experiment.split("/")[0]} & set(chosen)]
    found = [job for job in wanted if all((results / job.file(suffix)).is_file() for suffix in ("json", "parquet"))]
    current = [job for job in found if not _stale(job, read_json(results / job.file("json")), layout)]
    begun = _begun(results, [job for job in wanted if job not in current], layout) if unfinished else []
    if not current and not begun:
        what = "begun or finished" if unfinished else "finished"
        raise UserError(f"{results}: of {len(wanted)} runs none is {what} with today's settings and code")
    finished = sorted(job.file(suffix) for job in current for suffix in ("json", "parquet"))
    sums = {path: sha256(check(results / path)) for path in finished} | {path: sha256(results / path) for path in begun}
    listing, paths = {"format": FORMAT, "scale": layout.scale, "files": sums}, list(sums)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        whole = {LISTING: _text(listing).encode(), **{path: (results / path).read_bytes() for path in paths}}
        for name, content in whole.items():
            file.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)  # no times: same runs, same bytes
    write_atomically(archive, written.getvalue())
    also = f" and {len(begun)} checkpoints" if begun else ""
    yield f"{archive}: {len(current)} runs{also} of scale {layout.scale}, {len(written.getvalue()) / 1e6:.1f} MB"
    if len(found) > len(current):
        yield f"left out: {len(found) - len(current)} runs of other settings or code"


def import_(archive: Path, results: Path, sample: int = 1, data_dir: str | None = None) -> Iterator[str]:
    """Check an archive and add its runs to a results folder."""
    content = read_archive(archive)
    layout = _layout(results, data_dir)
    listing = json.loads(content.pop(LISTING))
    if listing["scale"] != layout.scale:
        raise UserError(f"{archive}: is of scale {listing['scale']}, {results} of scale {layout.scale}")
    jobs = sorted({Run(m["experiment"], m["algorithm"], m["shard"]) for m in map(RUN.fullmatch, content) if m})
    manifests = {}
    for job in jobs:
        try:
            manifests[job] = json.loads(content[job.file("json")])
            content[job.file("parquet")]
        except (KeyError, ValueError) as error:
            raise UserError(f"{archive}: {job}: is not complete: {error}") from None
        if why := _foreign(job, manifests[job]) or _stale(job, manifests[job], layout):
            raise UserError(f"{archive}: {job}: {why}")
    begun = _headers(archive, content, layout)
    also = f" and {len(begun)} checkpoints" if begun else ""
    yield f"{len(jobs)} runs{also} of today's settings and code; comparing their data"
    _compare_data(archive, {**manifests, **{job: header for job, (_, header) in begun.items()}}, layout)
    cheap = [job for job in jobs if manifests[job]["seconds"] <= CHEAP]
    for job in random.SystemRandom().sample(cheap, min(sample, len(cheap))):
        yield f"training {job} again"
        _compare_again(archive, job, content[job.file("parquet")], layout)
    origin = {"archive_sha256": sha256(archive)}
    for job in jobs:
        write_atomically(results / job.file("parquet"), content[job.file("parquet")])
        write_json(results / job.file("json"), {**manifests[job], "imported": origin})
        seal(results / job.file(suffix) for suffix in ("json", "parquet"))
    yield f"{results}: {len(jobs)} runs imported; `make reproduce` judges with them"
    for job, (name, header) in begun.items():
        if further := _further(job, header, results):
            yield f"{job}: left out, {further}"
        else:
            write_atomically(results / name, content[name])
            yield f"{job}: goes on from round {header['round']} of {header['rounds']}"


def _begun(results: Path, jobs: Sequence[Run], layout: Any) -> list[str]:
    """The checkpoints of those jobs that were begun with today's settings and code."""
    from fedrepro.workflow.job_checkpoints import unfinished

    kept = unfinished(results)
    mine = [kept[str(job)][0] for job in jobs if str(job) in kept and not _stale(job, kept[str(job)][1], layout)]
    return [str(path.relative_to(results)) for path in mine]


def _headers(archive: Path, content: Mapping[str, bytes], layout: Any) -> dict[Run, tuple[str, dict[str, Any]]]:
    """Job → (name, header) of each checkpoint of an archive, if it is one of this checkout's jobs."""
    from fedrepro.core.checkpoint_file import DamagedCheckpoint, unpack
    from fedrepro.workflow.job_checkpoints import checkpoint_name

    found = {}
    for name in filter(CHECKPOINT.fullmatch, content):
        try:
            header, _ = unpack(content[name])
            job = Run(*header["job"].rsplit("/", 2))
            if name != f"checkpoints/{checkpoint_name(header)}":
                raise UserError(f"{archive}: {name}: is the checkpoint of another job ({job})")
            if why := _stale(job, header, layout):
                raise UserError(f"{archive}: {job}: {why}")
        except (DamagedCheckpoint, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{archive}: {name}: {error}") from None
        found[job] = name, header
    return found


def _further(job: Run, header: Mapping[str, Any], results: Path) -> str:
    """Why a checkpoint is not needed here; empty if it is."""
    from fedrepro.workflow.job_checkpoints import unfinished

    if (results / job.file("json")).is_file():
        return "it is finished here"
    kept = unfinished(results).get(str(job))
    return "it is as far here" if kept and kept[1]["round"] >= header["round"] else ""


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def read_archive(archive: Path) -> dict[str, bytes]:
    """The files of an archive by name, each as its listing says."""
    if not archive.is_file():
        raise UserError(f"{archive}: there is no such file")
    try:
        with zipfile.ZipFile(archive) as file:
            members = file.infolist()
            for member in members:
                kind = stat.S_IFMT(member.external_attr >> 16)
                known = member.filename == LISTING or any(p.fullmatch(member.filename) for p in (RUN, CHECKPOINT))
                if not known or kind not in (0, stat.S_IFREG):
                    raise UserError(f"{archive}: {ascii(member.filename)[:200]}: is no file of an archive of evidence")
            if sum(member.file_size for member in members) > LARGEST:
                raise UserError(f"{archive}: holds more than {LARGEST / 2**30:.0f} GB")
            if len({member.filename for member in members}) < len(members):
                raise UserError(f"{archive}: holds a file twice")
            content = {member.filename: file.read(member) for member in members}
        listed = json.loads(content[LISTING])
        if listed["format"] != FORMAT or listed["scale"] not in SCALES or not isinstance(listed["files"], dict):
            raise ValueError("its listing is of another format")
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        raise UserError(f"{archive}: is no archive of evidence: {error}") from None
    for name in sorted({*listed["files"], *content} - {LISTING}):
        if name not in content or hashlib.sha256(content[name]).hexdigest() != listed["files"].get(name):
            raise UserError(f"{archive}: {name}: is not as it was exported")
    return content


def _layout(results: Path, data_dir: str | None = None) -> Any:
    """The workflow's layout for a results folder, results/<scale>."""
    from fedrepro.workflow.layout import Layout  # here: other commands start faster without

    if results.name not in SCALES:
        raise UserError(f"{results}: is not the results of a scale ({', '.join(SCALES)})")
    config = {**read_yaml(ROOT / "config" / "config.yaml"), "scale": results.name, "results": str(results.parent)}
    return Layout({**config, "config": "config", **({"data_dir": data_dir} if data_dir else {})})


def _foreign(job: Run, manifest: Mapping[str, Any]) -> str:
    """Why a manifest is not that of the run that it came with; empty if it is."""
    told = Run(*(str(manifest.get(key)) for key in ("experiment", "algorithm", "shard")))
    return "" if told == job else f"its manifest is of {told}"


def _stale(job: Run, manifest: Mapping[str, Any], layout: Any) -> str:
    """Why a run is not one of this checkout's settings and code; empty if it is."""
    experiment = layout.experiments.get(job.experiment)
    if experiment is None:
        return f"there is no such experiment here{nearest(job.experiment, layout.experiments)}"
    if (job.algorithm, job.shard) not in experiment.jobs():
        return "there is no such algorithm or shard here"
    if manifest.get("config_sha256") != experiment.job_sha256(job.algorithm):
        return "was run with other settings than this checkout's"
    code = layout.hashed("train_algorithm", layout.training_code(_wildcards(job)))
    return "" if manifest.get("code_sha256") == code else "was run with other code than this checkout's"


def _wildcards(job: Run) -> SimpleNamespace:
    study, experiment = job.experiment.split("/")
    return SimpleNamespace(study=study, experiment=experiment, algorithm=job.algorithm, shard=job.shard)


def _compare_data(archive: Path, manifests: Mapping[Run, Mapping[str, Any]], layout: Any) -> None:
    """Prepare the runs' data here, and refuse a run that was made on other data."""
    needed = {job: layout.training_data(_wildcards(job)) for job in manifests}
    _snakemake(layout, sorted({path for files in needed.values() for path in files.values()}))
    for job, files in needed.items():
        data, federation = (read_json(Path(files[key]).with_suffix(".json")) for key in ("dataset", "federation"))
        theirs = manifests[job]
        if theirs["data"]["sha256"] != data["sha256"]:
            kinds = f"{theirs['data']['kind']} there, {data['kind']} here"
            raise UserError(f"{archive}: {job}: was run on other data than here ({data['name']}: {kinds})")
        if theirs["federation_sha256"] != federation["sha256"]:
            raise UserError(f"{archive}: {job}: was run on another partition of the data")


def _compare_again(archive: Path, job: Run, parquet: bytes, layout: Any) -> None:
    """Train one run again in a folder of its own, and refuse the archive if the numbers differ."""
    import numpy as np
    import pandas as pd

    theirs = pd.read_parquet(io.BytesIO(parquet))
    with tempfile.TemporaryDirectory(prefix="fedrepro-again-") as folder:
        target = f"{folder}/{layout.scale}/{job.file('parquet')}"
        _snakemake(layout, [target], results=folder)
        ours = pd.read_parquet(target)
    keys = [column for column in ours if column != "value"]
    same = list(ours) == list(theirs) and ours[keys].equals(theirs[keys])
    if not same or not np.allclose(ours["value"], theirs["value"], rtol=ROUNDING, atol=1e-9, equal_nan=True):
        raise UserError(f"{archive}: {job}: gives other numbers when it is trained again here")


def _snakemake(layout: Any, targets: Sequence[str], results: str | None = None) -> None:
    config = {"scale": layout.scale, "results": results or str(Path(layout.results).parent)}
    config |= {"data_dir": layout.data_dir} if layout.data_dir else {}
    done = snakemake(targets, config)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        raise UserError(f"the data could not be prepared, or the run not trained again, here: {last}")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("way", choices=["export", "import"])
    parser.add_argument("archive", type=Path)
    parser.add_argument("names", nargs="*", help="export: studies or STUDY/EXPERIMENTs (all if none)")
    parser.add_argument("--unfinished", action="store_true", help="export: also the checkpoints of unfinished runs")
    parser.add_argument("--sample", type=int, default=1, help="import: cheap runs that are trained again")
    parser.add_argument("--data-dir", help="import: folder of real data")
    folder_argument(parser)


COMMAND = Command(help="finished runs as an archive: export it, import one", arguments=arguments, run=run)
