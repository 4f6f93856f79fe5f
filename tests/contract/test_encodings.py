"""Text is UTF-8 on every machine: no file of the package is opened with the encoding of the locale. ruff's PLW1514 sees
only calls whose type it can infer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fedrepro.files import ROOT

TEXT = ("read_text", "write_text", "open")
NOT_TEXT = ("os", "tarfile", "gzip", "opened", "Image", "webbrowser")  # no text files


def without_encoding(tree: ast.AST) -> Iterator[int]:
    """The lines of calls that open a text file without saying how it is encoded."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        if "ZipFile" in ast.unparse(node.func):  # its members are bytes
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        constants = [node.value for value in given for node in ast.walk(value) if isinstance(node, ast.Constant)]
        binary = any(mode in ("rb", "wb", "ab", "r+b") for mode in constants)
        named = any(keyword.arg == "encoding" for keyword in node.keywords)
        if name in TEXT and owner not in NOT_TEXT and not binary and not named:
            yield node.lineno


def test_every_text_file_is_opened_as_utf_8():
    files = [path for folder in ("src", "scripts") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        for line in without_encoding(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_the_check_sees_what_it_should():
    code = 'a.read_text()\nopen("x")\nopen("x", "rb")\na.open(encoding="utf-8")\na.write_text(t, encoding="utf-8")'
    assert list(without_encoding(ast.parse(code))) == [1, 2]
