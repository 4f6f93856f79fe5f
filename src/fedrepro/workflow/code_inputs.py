"""The library files that a job runs on, and one hash of them: editing an algorithm re-runs its own jobs only.

The import graph is read from the source, without importing. An `__init__.py` with only a docstring does not count. The
hash, a parameter of the job, is of syntax trees: comments, docstrings and formatting do not change it.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from fedrepro.core import parts
from fedrepro.files import ROOT

SOURCE = ROOT / "src"


@cache
def files_behind(*modules: str) -> tuple[str, ...]:
    """Files (relative to the checkout, sorted) of the modules and of all that they import of this package."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module not in seen and any(not isinstance(node, ast.Expr) for node in _tree(module).body):
            seen.add(module)
            pending.extend(_imports(module))
    return tuple(sorted(str(_file(m).relative_to(ROOT)) for m in seen))


def read_all() -> None:
    """Cache the imports of every file of the package, for this process and its forks."""
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        _imports(name.removesuffix(".__init__"))


def training_files(methods: Iterable[str], model: str) -> tuple[str, ...]:
    """Files behind a training job of `methods` on `model`."""
    of_methods = (parts.module_of("algorithms", method) for method in methods)
    return files_behind("fedrepro.workflow.train_job", *of_methods, parts.module_of("models", model))


@cache
def code_sha256(files: tuple[str, ...]) -> str:
    """One hash of library files (relative to the checkout): of their names and of what they do."""
    listed = "".join(f"{file}:{syntax_sha256(file)};" for file in sorted(files))
    return hashlib.sha256(listed.encode()).hexdigest()


@cache
def syntax_sha256(file: str) -> str:
    """Hash of a file's syntax tree without docstrings; for a file that is not Python, of its content."""
    path = ROOT / file
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
    return ast.parse(_file(module).read_text())


@cache
def _file(module: str) -> Path:
    base = SOURCE.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The package's modules that a module imports at run time, with their parents."""
    found: set[str] = set()
    for node in _runtime_nodes(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return tuple(sorted(m for m in found if m.split(".")[0] == "fedrepro" and _file(m).is_file()))


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those under `if TYPE_CHECKING:`; expressions contain no imports."""
    for node in ast.iter_child_nodes(tree):
        typing_only = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case) and not typing_only:
            yield node
            yield from _runtime_nodes(node)
