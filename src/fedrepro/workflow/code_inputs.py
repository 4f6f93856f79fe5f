"""Which library files a job runs on.

A job's inputs include these files, so that editing an algorithm re-runs its own jobs and no others. The import
graph is read from the source, without importing anything. An `__init__.py` that only has a docstring does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from fedrepro.core import parts
from fedrepro.files import ROOT

SOURCE = ROOT / "src"


@cache
def files_behind(*modules: str) -> tuple[str, ...]:
    """Files (relative to the checkout, sorted) of the given modules and of all they import of this package."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module in seen or not _has_code(module):
            continue
        seen.add(module)
        pending.extend(_imports(module))
    return tuple(sorted(str(_file(m).relative_to(ROOT)) for m in seen))


def read_all() -> None:
    """Read the imports of every file of the package, which are then known to this process and to what it forks."""
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        _imports(name.removesuffix(".__init__"))


def training_files(methods: Iterable[str], model: str) -> tuple[str, ...]:
    """What a training job of `methods` on `model` runs on."""
    of_methods = (parts.module_of("algorithms", method) for method in methods)
    return files_behind("fedrepro.workflow.train_job", *of_methods, parts.module_of("models", model))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text())


def _has_code(module: str) -> bool:
    """Whether a module is more than its docstring."""
    return any(not isinstance(node, ast.Expr) for node in _tree(module).body)


@cache
def _file(module: str) -> Path:
    base = SOURCE.joinpath(*module.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


@cache
def _imports(module: str) -> tuple[str, ...]:
    """The package's modules that a module imports at run time; a package's parents come along."""
    found: set[str] = set()
    for node in _runtime_nodes(_tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {m for m in found if m.split(".")[0] == "fedrepro" and _file(m).is_file()}
    return tuple(sorted(ours))


def _runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements but those under `if TYPE_CHECKING:`; expressions hold no imports and are most of a file."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        yield from _runtime_nodes(node)
