"""Reading a file never runs code: no pickle, `torch.load` for tensors only, plain YAML only, no shell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fedrepro.files import ROOT

FILES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").glob("*.py")])
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
#: modules whose loaders run code → files that may mention them
MODULES = {
    "pickle": {"src/fedrepro/core/checkpoint.py"},  # mentions the error that torch raises
    "cloudpickle": set(),
    "dill": set(),
    "joblib": set(),
    "marshal": set(),
    "shelve": set(),
}


def name_of(node: ast.expr) -> str:
    return ast.unparse(node)


def given(call: ast.Call, keyword: str):
    """The constant passed for a keyword of a call, or None."""
    return next((k.value.value for k in call.keywords if k.arg == keyword and isinstance(k.value, ast.Constant)), None)


def offences(path: Path) -> list[str]:
    found = []
    relative = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [m for m in modules if relative not in MODULES.get(m.split(".")[0], {relative})]
        if not isinstance(node, ast.Call):
            continue
        called = name_of(node.func)
        rules = {
            "torch.load": given(node, "weights_only") is True,
            "np.load": given(node, "allow_pickle") is False,
            "numpy.load": given(node, "allow_pickle") is False,
            "yaml.load": len(node.args) == 2 and name_of(node.args[1]) == "_Loader",
            "pickle.load": False,
            "pickle.loads": False,
            "pd.read_pickle": False,
            "eval": False,
            "exec": False,
            "os.system": False,
            "os.popen": False,
            "yaml.unsafe_load": False,
            "yaml.full_load": False,
        }
        if not rules.get(called, True) or given(node, "shell") is True:
            found.append(f"line {node.lineno}: {name_of(node)[:80]}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_file_reads_nothing_that_could_run(name):
    assert offences(ROOT / name) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.numpy_pickle",
        "torch.load(f)",
        "torch.load(f, weights_only=False)",
        "np.load(f)",
        "np.load(f, allow_pickle=True)",
        "yaml.load(f, yaml.Loader)",
        "yaml.unsafe_load(f)",
        "subprocess.run(c, shell=True)",
        "os.system(c)",
        "eval(x)",
    ],
)
def test_the_check_itself_sees_what_it_should(tmp_path, monkeypatch, line):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "x.py").write_text(line)
    assert len(offences(tmp_path / "x.py")) == 1
