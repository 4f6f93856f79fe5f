"""Studies outside the package: folders that hold study.yaml and, beside it, the code of the study.

The variable FEDREPRO_STUDIES lists them, so that jobs and notebooks, which are processes of their own, know them too.
The code of such a folder is imported as `fedrepro.studies.<name>`, like that of a study of the package: its place gives
its name, and no config file names code. A folder's name is the study's name.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import MappingProxyType

from fedrepro.errors import UserError

VARIABLE = "FEDREPRO_STUDIES"
PACKAGE = "fedrepro.studies"
OURS = Path(__file__).parents[1] / "studies"
NAME = "[a-z][a-z0-9_]*"


def add(folders: Iterable[str | Path]) -> None:
    """Make studies known to this process and to those that it starts. A folder is a study or holds studies."""
    listed = [*known().values(), *(study.resolve() for folder in folders for study in _studies_in(Path(folder)))]
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(map(str, listed)))
    known()


def known() -> Mapping[str, Path]:
    """Name → folder of every study outside the package."""
    return _known(os.environ.get(VARIABLE, ""))


@cache
def _known(listed: str) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for folder in map(Path, filter(None, listed.split(os.pathsep))):
        if not re.fullmatch(NAME, folder.name):
            raise UserError(f"{folder}: the folder's name is the study's: lower-case letters, digits and _ only")
        if folder.name in found:
            raise UserError(f"studies: two are named '{folder.name}': {found[folder.name]} and {folder}")
        found[folder.name] = folder
        if not (OURS / folder.name).is_dir():  # a study of that name is told by `load_studies`
            _register(folder)
    return MappingProxyType(found)


def _studies_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise UserError(f"studies: folder '{folder}' does not exist")
    if os.pathsep in str(folder.resolve()):
        raise UserError(f"studies: the path of '{folder}' has a '{os.pathsep}', which separates paths")
    found = [folder] if (folder / "study.yaml").is_file() else [p.parent for p in sorted(folder.glob("*/study.yaml"))]
    if not found:
        raise UserError(f"studies: '{folder}' has no study.yaml; `fedrepro new-study NAME` writes one to start from")
    return found


def _register(folder: Path) -> None:
    """Make the folder a package below fedrepro.studies; it needs no __init__.py."""
    spec = ModuleSpec(f"{PACKAGE}.{folder.name}", None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    module = module_from_spec(spec)
    del module.__file__  # None in a package without __init__.py, which `inspect` takes for a built-in module
    sys.modules[spec.name] = module
