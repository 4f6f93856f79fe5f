"""The library files that a job runs on, and one hash of them: editing an algorithm re-runs its own jobs only.

The import graph is read from the source, without importing. An `__init__.py` with only a docstring does not count. The
hash, a parameter of the job, is of syntax trees: comments, docstrings and formatting do not change it. Files are named
as in a checkout, `src/fedrepro/…` and `scripts/…`, those of a study outside the package `studies/<study>/…`: wherever
they are installed, the hash is the same.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from fedrepro.core import outside, parts
from fedrepro.files import ROOT


@cache
def files_behind(*modules: str) -> tuple[str, ...]:
    """Files, by name and sorted, of the modules and of all that they import of this package."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module not in seen and any(not isinstance(node, ast.Expr) for node in _tree(module).body):
            seen.add(module)
            pending.extend(_imports(module))
    return tuple(sorted(map(_name, seen)))


def path_of(file: str) -> Path:
    """Where a file, by name, is."""
    top, *rest = Path(file).parts
    if top == "studies":
        return outside.known()[rest[0]].joinpath(*rest[1:])
    return parts.PACKAGE.parent.joinpath(*rest) if top == "src" else ROOT / file


def read_all() -> None:
    """Cache the imports of every file of the package, for this process and its forks."""
    for path in parts.PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(parts.PACKAGE.parent).with_suffix("").parts)
        _imports(name.removesuffix(".__init__"))


def training_files(methods: Iterable[str], model: str) -> tuple[str, ...]:
    """Files behind a training job of `methods` on `model`."""
    of_methods = (parts.module_of("algorithms", method) for method in methods)
    return files_behind("fedrepro.workflow.train_job", *of_methods, parts.module_of("models", model))


@cache
def code_sha256(files: tuple[str, ...]) -> str:
    """One hash of library files: of their names and of what they do."""
    listed = "".join(f"{file}:{syntax_sha256(file)};" for file in sorted(files))
    return hashlib.sha256(listed.encode()).hexdigest()


@cache
def syntax_sha256(file: str) -> str:
    """Hash of a file's syntax tree without docstrings; for a file that is not Python, of its content."""
    path = path_of(file)
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    text = "".join(_written(ast.parse(path.read_text(encoding="utf-8"))))
    return hashlib.sha256(text.encode()).hexdigest()


def _written(node: object) -> Iterator[str]:
    """The tree as text, the same in all versions of Python: no places, no empty fields, no docstrings."""
    if isinstance(node, list):
        yield "["
        for child in node:
            yield from _written(child)
        yield "]"
    elif isinstance(node, ast.AST):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docstring = isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        yield f"({type(node).__name__}"
        for name, field in ast.iter_fields(node):
            value = field[1:] if docstring and name == "body" else field
            if value is not None and value != []:
                yield f" {name}="
                yield from _written(value)
        yield ")"
    else:
        yield repr(node)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _name(module: str) -> str:
    _, *rest = module.split(".")
    path = _file(module)
    if rest[:1] == ["studies"] and len(rest) > 2 and rest[1] in outside.known():
        return str(Path("studies", rest[1], path.relative_to(outside.known()[rest[1]])))
    return str(Path("src", path.relative_to(parts.PACKAGE.parent)))


@cache
def _file(module: str) -> Path:
    return parts.file_of(module)


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The package's modules that a module imports at run time, with their parents."""
    found: set[str] = set()
    for node in _runtime_nodes(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (base := _base(module, node)):
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return tuple(sorted(m for m in found if m.split(".")[0] == "fedrepro" and _file(m).is_file()))


def _base(module: str, node: ast.ImportFrom) -> str:
    """The module that `from … import` names; of a relative import, below the importing module's package."""
    if not node.level:
        return node.module or ""
    steps = module.split(".") if _file(module).name == "__init__.py" else module.split(".")[:-1]
    return ".".join([*steps[: len(steps) - node.level + 1], *filter(None, [node.module])])


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those under `if TYPE_CHECKING:`; expressions contain no imports."""
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not typing_only:
            yield node
            yield from _runtime_nodes(node)
