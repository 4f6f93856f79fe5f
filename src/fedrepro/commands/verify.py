"""`fedrepro verify [FOLDER…]`: compare every result with its checksum.

A folder is results/<scale>, results/reference or an archive of evidence; without one, all of results/. Damaged files of
results/<scale> are noted, so that the next run makes them again. Generated data, which a finished run empties, is as it
should be.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import Command, shown
from fedrepro.core import checksums
from fedrepro.core.experiment import SCALES
from fedrepro.errors import UserError
from fedrepro.files import ROOT


def run(given: Namespace) -> Iterator[str]:
    """One line per wrong file, one per folder; at the end UserError if a file was wrong."""
    from fedrepro.workflow import damage, spare_data

    found = 0
    for folder in given.folder or [path for n in (*SCALES, "reference") if (path := ROOT / "results" / n).is_dir()]:
        if not folder.exists():
            raise UserError(f"{folder}: there is no such folder")
        wrong = _wrong_in_archive(folder) if folder.is_file() else list(checksums.wrong(folder))
        wrong = [(path, why) for path, why in wrong if not spare_data.is_emptied(path)]
        for path, why in wrong:
            yield f"{shown(path)}: {why}"
            if why == "damaged" and folder.name in SCALES:
                damage.note(folder, path)
        yield f"{shown(folder)}: {f'{len(wrong)} files are wrong' if wrong else 'all files are as they were written'}"
        found += len(wrong)
    if found:
        raise UserError(f"{found} files are not as they were written, or have no checksum")


def _wrong_in_archive(archive: Path) -> list[tuple[Path, str]]:
    from fedrepro.commands.evidence import read_archive

    try:
        read_archive(archive)
    except UserError as error:
        return [(archive, str(error).removeprefix(f"{archive}: "))]
    return []


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="*", type=Path, help="results folders or archives of evidence; all of results/ if none is named"
    )


COMMAND = Command(help="compare every result with its checksum", arguments=arguments, run=run)
