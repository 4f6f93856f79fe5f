"""One run at a time per results folder, by a lock that ends with its process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest

from fedrepro.errors import UserError
from fedrepro.workflow import run_lock as running

HOLD = """
import sys
from fedrepro.workflow import run_lock as running
running.hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holders(tmp_path, monkeypatch):
    """Starts processes that hold a results folder until they are killed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "PATIENCE", 0.1)
    monkeypatch.setattr(running, "_held", {})
    started = []

    def start(results: str) -> subprocess.Popen:
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", HOLD, results], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert started[-1].stdout.readline() == "held\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def write_lock(name: str, *files: str):
    path = running.FOLDER / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{file}\n" for file in files))
    return path


def test_a_second_run_names_the_holder_of_the_folder(holders):
    first = holders("results/smoke")
    with pytest.raises(UserError) as told:
        running.hold("results/smoke")
    assert str(told.value).startswith(f"another run is at work on results/smoke (process {first.pid} on ")
    assert running.busy() == str(told.value)
    running.hold("results/demo")  # another scale is another folder
    assert running.who_runs("results/demo")["pid"] == os.getpid()


def test_a_killed_run_holds_nothing(holders):
    first = holders("results/smoke")
    first.kill()
    first.wait()
    assert running.who_runs("results/smoke") is None
    assert running.busy() is None
    running.hold("results/smoke")


def test_the_locks_of_a_killed_run_are_removed_and_no_others(holders):
    first, other = holders("results/smoke"), holders("results/demo")
    mine = [write_lock("0.input.lock", "src/a.py", "results/smoke/a"), write_lock("0.output.lock", "results/smoke/b")]
    theirs = write_lock("1.output.lock", "results/demo/b", "my/results/smoke/c")
    said = []
    running.clear_left_overs("results/smoke", said.append)
    assert said == []
    assert all(path.exists() for path in mine)
    first.kill()
    first.wait()
    running.clear_left_overs("results/smoke", said.append)
    assert said == [f"the run of process {first.pid} was killed: its locks are removed, and its results are kept"]
    assert not any(path.exists() for path in mine)
    assert theirs.exists()
    assert other.poll() is None


@pytest.mark.parametrize("record", ["", "not json", "[]", json.dumps({"host": f"not-{platform.node()}", "pid": 1})])
def test_a_lock_that_may_be_of_another_machine_stays(holders, record):
    lock = write_lock("0.output.lock", "results/smoke/b")
    running._file("results/smoke").parent.mkdir(parents=True)
    running._file("results/smoke").write_text(record)
    running.clear_left_overs("results/smoke", pytest.fail)
    assert lock.exists()


def test_a_folder_that_cannot_be_written_to_is_left_to_snakemake(holders):
    running.FOLDER.mkdir()
    (running.FOLDER / "fedrepro").write_text("in the way")
    running.hold("results/smoke")
    assert running.busy() is None
