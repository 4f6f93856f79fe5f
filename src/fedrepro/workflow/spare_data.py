"""Generated data sets are not kept: a successful run empties their files, and a later run generates those again that
one of its jobs needs.

Most of a results folder would be random numbers that follow from a seed in a second or two. An emptied file keeps its
time: to snakemake it exists and is no newer, so no job runs again because of it. (A deleted or `temp` file would have
every method on the data set trained again as soon as one of them needs it.) What is generated again has the checksum in
the data set's json file; otherwise the run ends with one line, and the next one makes the data set and all that follows
from it anew.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from fedrepro.errors import UserError
from fedrepro.files import read_json
from fedrepro.workflow import damage

if TYPE_CHECKING:
    from fedrepro.workflow.layout import Layout

LEAST = 2**20  # bytes of a file that is worth it


def empty(results: Path) -> int:
    """Empty the data files of a results folder that were made without real files; returns the bytes that this frees."""
    freed = 0
    for about in sorted(results.glob("data/*/*.json")):
        file = about.with_suffix(".npz")
        size = file.stat().st_size if file.is_file() else 0
        if size >= LEAST and "found" not in read_json(about):
            with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as nothing:
                pass
            _replace(Path(nothing.name), file)
            freed += size
    return freed


def is_emptied(path: Path) -> bool:
    """Whether `empty` emptied a file of a results folder."""
    return path.suffix == ".npz" and path.parent.parent.name == "data" and path.is_file() and not path.stat().st_size


def fill(layout: "Layout", needed: Iterable[str]) -> None:
    """Generate the emptied ones among the files that jobs need."""
    for file in sorted({path for path in map(Path, needed) if is_emptied(path)}):
        _generate(layout, file)


def _generate(layout: "Layout", file: Path) -> None:
    from fedrepro.data.preparation import prepare_data

    dataset, seeds = file.parent.name, layout.data_seeds(SimpleNamespace(shard=file.stem))
    with tempfile.TemporaryDirectory(dir=layout.results, prefix=".") as folder:
        made = Path(folder) / file.name
        prepare_data(dataset, layout.datasets[dataset], seeds, layout.data, layout.data_folders, made)
        if read_json(made.with_suffix(".json"))["sha256"] != read_json(file.with_suffix(".json"))["sha256"]:
            damage.note(Path(layout.results), file)
            raise UserError(f"{file}: is generated differently now: the next run makes it and its results again")
        _replace(made, file)


def _replace(new: Path, old: Path) -> None:
    """Put a file in the place of another, with the other's time and mode."""
    about = old.stat()
    os.chmod(new, about.st_mode & 0o777)
    os.utime(new, ns=(about.st_atime_ns, about.st_mtime_ns))
    os.replace(new, old)
