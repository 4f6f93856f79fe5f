"""Files: written completely or not at all, identified by their content."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from fedrepro import files
from fedrepro.errors import UserError
from fedrepro.files import check_writable, read_json, sha256, sha256_of, write_atomically, write_json


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
        assert os.umask(mask) == mask  # left as it was
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
    """A limit on the size of files stands for a full disk, which tests/workflow/test_faults.py has where it may."""
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
