"""Which library files a job runs on.

A job's inputs include these files, so that editing an algorithm re-runs its own jobs and no others. The import
graph is read from the source, without importing anything. The registries (`algorithms/__init__` and its like)
are not followed: a job depends on the one method it names, not on all that are listed beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fedrepro.core.config import ROOT

SOURCE = ROOT / "src"
REGISTRIES = frozenset(f"fedrepro.{name}" for name in ("algorithms", "datasets", "models", "partitions"))


@cache
def files_behind(*modules: str) -> tuple[str, ...]:
    """Files (relative to the checkout, sorted) of the given modules and of all they import of this package."""
    seen: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module in seen or module in REGISTRIES:
            continue
        seen.add(module)
        pending.extend(_imports(module))
    return tuple(sorted(str(_file(m).relative_to(ROOT)) for m in seen))


@cache
def module_of(registry: str, name: str) -> str:
    """The module that defines the entry `name` of a registry: module_of("algorithms", "fedavg")."""
    package = f"fedrepro.{registry}"
    tree = _tree(package)
    defined_in = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in defined_in]
                    return next(defined_in[n] for n in reversed(names))
    raise KeyError(f"{name} is not in fedrepro.{registry}")


def read_all() -> None:
    """Read the imports of every file of the package, which are then known to this process and to what it forks."""
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        _imports(name.removesuffix(".__init__"))


def training_files(methods: Iterable[str], model: str) -> tuple[str, ...]:
    """What a training job of `methods` on `model` runs on."""
    of_methods = (module_of("algorithms", method) for method in methods)
    return files_behind("fedrepro.workflow.train_job", *of_methods, module_of("models", model))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text())


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


def _runtime_nodes(tree: ast.AST):
    """All statements but those under `if TYPE_CHECKING:`; expressions hold no imports and are most of a file."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            continue
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        yield node
        yield from _runtime_nodes(node)
