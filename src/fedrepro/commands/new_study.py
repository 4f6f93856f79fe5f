"""`fedrepro new-study NAME`: a folder with a small working study to start from (docs/bring-a-paper.md)."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from fedrepro.commands.command import CONFIG, Command, shown
from fedrepro.core.study import check_name, study_folders
from fedrepro.errors import UserError
from fedrepro.files import write_atomically

TEMPLATE = Path(__file__).parent / "template"
SUFFIX = ".template"  # so that no tool takes the files for modules of this package
NAME = "STUDYNAME"


def write_study(folder: Path) -> list[Path]:
    """The template's files in a new folder, which gives the study its name."""
    check_name(folder, folder.name)
    if folder.exists():
        raise UserError(f"{folder}: exists already")
    if folder.name in study_folders(CONFIG):
        raise UserError(f"'{folder.name}' is the name of another study")
    written = []
    for path in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        target = folder / str(path.relative_to(TEMPLATE)).removesuffix(SUFFIX).replace(NAME, folder.name)
        write_atomically(target, path.read_text(encoding="utf-8").replace(NAME, folder.name))
        written.append(target)
    return written


def new_study(given: Namespace) -> Iterator[str]:
    for path in write_study(given.folder / given.name):
        yield f"wrote {shown(path)}"
    folder = shown(given.folder / given.name)
    yield f"`fedrepro run {folder}` runs it; `fedrepro check {folder}` checks it; then put your paper in its place"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the study's and its folder's name: lower case, digits and _")
    parser.add_argument("--to", dest="folder", type=Path, default=Path(), help="where to write it; default: here")


COMMAND = Command(help="write a small working study to start from", arguments=arguments, run=new_study)
