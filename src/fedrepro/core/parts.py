"""Methods, models, data sets and partitions, found by their files.

A part is a module and has the module's name. Shared parts are in `algorithms/`, `models/`, `data/datasets/` and
`data/partitions/`, those of one study in `algorithms/`, `models/`, `datasets/` and `partitions/` of `studies/<study>/`,
or of the study's folder if that is outside the package (`fedrepro.core.outside`).
A file whose name begins with an underscore is no part. A module provides the one class that derives from `Algorithm`
or `Model`, a data set's `DATASET`, or the function with the partition's name. It is imported when first used.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from fedrepro.core import outside
from fedrepro.errors import UserError, nearest

if TYPE_CHECKING:
    from fedrepro.core.algorithm import Algorithm
    from fedrepro.core.model import Model

PACKAGE = Path(__file__).resolve().parents[1]
#: kind → folder of the shared parts
SHARED = dict(algorithms="algorithms", models="models", datasets="data/datasets", partitions="data/partitions")


def add_studies(folders: Iterable[str | Path]) -> None:
    """Find also the parts of studies outside the package: a folder is a study or holds studies."""
    if not (listed := list(folders)):
        return
    outside.add(listed)
    if twice := sorted(outside.known().keys() & {path.name for path in PACKAGE.glob("studies/[!_]*/")}):
        raise UserError(f"studies: '{twice[0]}' is a study of the package: give the folder another name")
    for cached in (modules, artefact_module, label, _only_class):
        cached.cache_clear()


def homes() -> dict[str, Path]:
    """Study → the folder of its code."""
    return {path.name: path for path in sorted(PACKAGE.glob("studies/[!_]*/"))} | dict(outside.known())


def sources() -> list[Path]:
    """All source files of the package and of the studies outside it."""
    return sorted(path for folder in (PACKAGE, *outside.known().values()) for path in folder.rglob("*.py"))


@functools.cache
def modules(kind: str) -> Mapping[str, str]:
    """Name → module of every part of a kind, shared ones first."""
    shared = (("fedrepro", *Path(SHARED[kind]).parts), PACKAGE / SHARED[kind])
    own = ((("fedrepro", "studies", study, kind), folder / kind) for study, folder in homes().items())
    found: dict[str, str] = {}
    for package, path in ((p, path) for p, folder in (shared, *own) for path in sorted(folder.glob("[!_]*.py"))):
        module = ".".join((*package, path.stem))
        if path.stem in found:
            raise UserError(f"{kind}: two files are named '{path.stem}': {found[path.stem]} and {module}")
        found[path.stem] = module
    return MappingProxyType(found)


def module_of(kind: str, name: str) -> str:
    """The module of a part; UserError with the nearest name if unknown."""
    known = modules(kind)
    if name not in known:
        raise UserError(f"'{name}' is unknown{nearest(name, known)}")
    return known[name]


def usable_by(study: str, kind: str) -> list[str]:
    """Names of the parts of a kind that are shared or the study's own."""
    own = f"fedrepro.studies.{study}."
    return [n for n, module in modules(kind).items() if not module.startswith("fedrepro.studies.") or own in module]


def algorithm(name: str) -> type[Algorithm]:
    return cast("type[Algorithm]", _only_class(module_of("algorithms", name), "fedrepro.core.algorithm", "Algorithm"))


def model(name: str) -> type[Model]:
    return cast("type[Model]", _only_class(module_of("models", name), "fedrepro.core.model", "Model"))


def dataset(name: str) -> Any:
    """The data set's `fedrepro.data.catalogue.Entry`."""
    return importlib.import_module(module_of("datasets", name)).DATASET


def measure(study: str) -> Callable[..., Any] | None:
    """The function that derives a study's measures from a tidy table, if it has any."""
    module = study_module(study, "measures")
    return importlib.import_module(module).measure if module else None


def partition(name: str) -> Callable[..., Any]:
    """The function that deals out a data set."""
    return cast("Callable[..., Any]", getattr(importlib.import_module(module_of("partitions", name)), name))


def study_module(study: str, name: str) -> str | None:
    """A module of a study's folder (`measures`, `bench`); None if it does not exist."""
    there = study in homes() and (homes()[study] / f"{name}.py").is_file()
    return f"fedrepro.studies.{study}.{name}" if there else None


@functools.cache
def artefact_module(study: str, artefact: str) -> str:
    """The module that defines the function of a figure or table: one of studies/<study>/artefacts*.py."""
    for path in sorted(homes()[study].glob("artefacts*.py")) if study in homes() else ():
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
        if any(isinstance(node, ast.FunctionDef) and node.name == artefact for node in nodes):
            return f"fedrepro.studies.{study}.{path.stem}"
    raise UserError(f"artefact '{study}/{artefact}': no function of that name in studies/{study}/artefacts*.py")


def result_modules() -> list[str]:
    """The modules of all studies that derive measures and draw artefacts."""
    names, folders = ("measures", "artefacts"), homes().values()
    found = [path for name in names for folder in folders for path in sorted(folder.glob(f"{name}*.py"))]
    return [f"fedrepro.studies.{path.parent.name}.{path.stem}" for path in found]


def file_of(module: str) -> Path:
    """The file of a module of the package or of a study outside it."""
    _, *rest = module.split(".")
    if rest[:1] == ["studies"] and rest[1:2] and rest[1] in outside.known():
        base = outside.known()[rest[1]].joinpath(*rest[2:])
    else:
        base = PACKAGE.joinpath(*rest)
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def source(module: str) -> ast.Module:
    """The syntax tree of a part's module, read without importing it."""
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


@functools.cache
def label(name: str) -> str:
    """A method's name as figures and tables show it: the `label` of its class, read without importing it."""
    tree = source(module_of("algorithms", name))
    for node in (line for top in tree.body if isinstance(top, ast.ClassDef) for line in top.body):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "label":
            return str(ast.literal_eval(ast.unparse(node.value))) if node.value else name
    return name


@functools.cache
def _only_class(module: str, home: str, base: str) -> Any:
    """The one class that a module derives from `home`.`base`; compared by name, since importing it imports torch."""
    own = [v for v in vars(importlib.import_module(module)).values() if isinstance(v, type) and v.__module__ == module]
    mine = [cls for cls in own if any((b.__module__, b.__name__) == (home, base) for b in cls.__mro__)]
    if len(mine) != 1:
        raise TypeError(f"{module}: defines {len(mine)} classes derived from {base}, exactly one is needed")
    return mine[0]
