"""The contracts of every data set, every partition, and every pair of both. A new one is covered as soon as its file
exists: a data set by the `example` of its entry, a partition by its `EXAMPLES`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from fedrepro.contracts.data import dataset_contracts, pair_contracts, partition_contracts
from fedrepro.core import parts

NAMES = {kind: list(parts.modules(kind)) for kind in ("datasets", "partitions")}
ALONE = {"datasets": dataset_contracts, "partitions": partition_contracts}
EVERY = [pytest.param(c, id=f"{name}: {c.says}") for kind in NAMES for name in NAMES[kind] for c in ALONE[kind](name)]
PAIRS = [pytest.param(c, id=c.says) for pair in product(*NAMES.values()) for c in pair_contracts(*pair)]


@pytest.mark.parametrize("contract", EVERY)
def test_a_data_set_or_partition_keeps_its_contracts(contract, tmp_path):
    contract.check(tmp_path)


@pytest.mark.parametrize("contract", PAIRS)
def test_a_partition_deals_out_a_data_set_or_gives_the_reason(contract, tmp_path):
    contract.check(tmp_path)


def imported(code: str) -> set[str]:
    """The modules in a fresh process after it has run the code."""
    code += "; import sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_no_data_set_and_no_partition_imports_torch():
    """Importing torch takes two seconds, which preparing data need not pay."""
    modules = [*parts.modules("datasets").values(), *parts.modules("partitions").values()]
    found = imported(f"import fedrepro.data.preparation, {', '.join(modules)}")
    assert set(modules) <= found
    assert "torch" not in found


def test_reading_a_prepared_data_set_takes_one_module():
    found = imported("import fedrepro.data.dataset")
    assert {m for m in found if m.startswith("fedrepro.")} == {
        *("fedrepro.data", "fedrepro.data.dataset", "fedrepro.errors", "fedrepro.files"),
    }


def test_no_module_of_data_imports_another_in_a_circle():
    """Neither at the top of a module nor inside a function."""
    paths = (parts.PACKAGE / "data").rglob("*.py")
    names = {".".join(path.relative_to(parts.PACKAGE.parent).with_suffix("").parts): path for path in paths}
    imports = {name: _imported_by(path) & set(names) for name, path in names.items()}
    while leaves := {name for name, needs in imports.items() if not needs}:
        imports = {name: needs - leaves for name, needs in imports.items() if name not in leaves}
    assert imports == {}


def _imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found
