"""Damaged results: who finds one notes it below <results>/damaged/, and the next run makes it again."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from fedrepro.core.checksums import check
from fedrepro.errors import Damaged
from fedrepro.files import write_atomically

FOLDER = "damaged"


def note(results: Path, path: Path) -> None:
    """Have the next run on the folder make a file again."""
    if Path(path).is_relative_to(results):
        name = Path(path).relative_to(results).as_posix()
        write_atomically(results / FOLDER / hashlib.sha256(name.encode()).hexdigest()[:16], name)


def make_again(results: str, say: Callable[[str], None]) -> None:
    """Mark the noted files as incomplete for snakemake, which then runs their jobs if it needs them. Notes of files
    that were made again are deleted."""
    notes = sorted(Path(results, FOLDER).glob("[0-9a-f]*"))
    if not notes:
        return
    from snakemake.persistence.file import FilePersistence  # here: jobs import this module, and need no snakemake

    records = FilePersistence(nolock=True, warn_only=True)
    for mark in notes:
        path = f"{results}/{mark.read_text(encoding='utf-8')}"
        if _as_recorded(Path(path)):
            mark.unlink(missing_ok=True)
        else:
            records._mark_incomplete(path, None)
            say(f"{path}: damaged: is made again")


def _as_recorded(path: Path) -> bool:
    try:
        return check(path).is_file()
    except (Damaged, OSError):
        return False
