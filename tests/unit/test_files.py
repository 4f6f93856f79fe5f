"""Files: written completely or not at all, identified by their content; and YAML read as plain values."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys

import pytest
import yaml

from fedrepro import files
from fedrepro.errors import UserError
from fedrepro.files import check_writable, read_json, read_yaml, sha256, sha256_of, write_atomically, write_json
from tests.configs import message


def test_writes_text_and_bytes_and_makes_the_folder(tmp_path):
    write_atomically(tmp_path / "a" / "b" / "text", "γ\n")
    write_atomically(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "a" / "b" / "text").read_bytes() == "γ\n".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["text"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_follow_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a", "")
        assert os.umask(mask) == mask  # restored
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_json_is_sorted_readable_and_read_back(tmp_path):
    write_json(tmp_path / "a.json", {"b": [1, 2.5], "a": "γ"})
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == '{\n "a": "γ",\n "b": [\n  1,\n  2.5\n ]\n}\n'
    assert read_json(tmp_path / "a.json") == {"a": "γ", "b": [1, 2.5]}


def test_hashes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    assert sha256_of({"a": 1, "b": [2]}) == sha256_of({"b": [2], "a": 1})
    assert sha256_of({"a": 1}) != sha256_of({"a": 2})
    assert sha256_of([1, 2]) != sha256_of([2, 1])


FULL = """
import resource, sys
from pathlib import Path
from fedrepro.files import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
write_atomically(Path(sys.argv[1]), bytes(10_000))
"""


def test_what_does_not_fit_leaves_the_old_file_and_nothing_else(tmp_path):
    """A file size limit stands in for a full disk; tests/workflow/test_faults.py uses a real one where it can."""
    write_atomically(tmp_path / "a", "old")
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "a")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert (tmp_path / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    check_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/folder: cannot be written to: "):
        check_writable(tmp_path / "file" / "folder")


# --- YAML -------------------------------------------------------------------------------------------------------------

#: end of a message that PyYAML's two parsers word differently
HERE = "in this context" if yaml.__with_libyaml__ else "here"


def test_yaml_is_read_as_plain_values(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("γ: 0.5 # assumed\nsizes: [1, 2]\nname: 'ring'\nnothing: null\n", encoding="utf-8")
    assert read_yaml(file) == {"γ": 0.5, "sizes": [1, 2], "name": "ring", "nothing": None}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' appears twice"),
        ("outer:\n  a: 1\n  a: 1\n", "line 3: key 'a' appears twice"),
        ("a: &x [1]\nb: *x\n", "line 2: YAML aliases are not allowed"),
        ("a: 1\n2: b\n", "line 2: key 2 must be text"),
        ("a: 1\nyes: b\n", "line 2: key True must be text"),
        ("a: 1\nb: [1, 2\n", "line 3: "),
        ("a: b: c\n", f"line 1: mapping values are not allowed {HERE}"),
        ("a: !!python/object/apply:os.system ['true']\n", "line 1: could not determine a constructor"),
        ("<<: {a: 1}\n", "line 1: could not determine a constructor"),
        ("[" * 5000, "not valid YAML"),
    ],
)
def test_wrong_yaml_is_refused_by_file_and_line(tmp_path, text, says):
    file = tmp_path / "a.yaml"
    file.write_text(text)
    told = message(read_yaml, file)
    assert told.startswith(f"{file}: ")
    assert says in told


def test_a_yaml_file_that_cannot_be_read_is_named(tmp_path):
    assert message(read_yaml, tmp_path / "none.yaml") == f"{tmp_path / 'none.yaml'}: no such file"
    assert f"{tmp_path}: is a folder, not a file" in message(read_yaml, tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    assert "latin.yaml: cannot be read" in message(read_yaml, tmp_path / "latin.yaml")


def test_a_renamed_file_outlasts_a_power_failure(tmp_path, monkeypatch):
    """The file is synced before the rename, its folder after it."""
    done: list[str] = []
    replace, sync = os.replace, os.fsync

    def record_sync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("rename"), replace(*paths)))
    write_atomically(tmp_path / "a", "x")
    assert done == ["file", "rename", "folder"]
