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
    monkeypatch.setattr(running, "_asked", ["results/smoke"])
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
    path = running.LOCKS / name
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


def record(**changes: object) -> str:
    """The record of a run that is not marked as ended."""
    own = {"pid": os.getppid(), "host": platform.node(), "boot": running._boot(), "began": running._began(os.getppid())}
    return json.dumps(own | changes)


def left_behind(text: str):
    running._file("results/smoke").parent.mkdir(parents=True, exist_ok=True)
    running._file("results/smoke").write_text(text)
    return running._file("results/smoke")


@pytest.mark.parametrize("text", ["", "not json", "[]", record(host=f"not-{platform.node()}")])
def test_a_lock_that_may_be_of_another_machine_stays(holders, text):
    lock = write_lock("0.output.lock", "results/smoke/b")
    left_behind(text)
    running.clear_left_overs("results/smoke", pytest.fail)
    assert lock.exists()


def test_a_folder_that_cannot_be_written_to_is_left_to_the_check_that_follows(holders, tmp_path):
    (tmp_path / "results").write_text("in the way")
    running.hold("results/smoke")
    assert running.busy() is None


HOLD_ONE = """
import sys
from fedrepro.errors import UserError
from fedrepro.workflow import run_lock
run_lock.PATIENCE = 0.5
try:
    run_lock.hold(sys.argv[1])
    print("held", flush=True)
except UserError as error:
    print(error, flush=True)
sys.stdin.read()
"""


def test_of_five_spellings_and_two_checkouts_exactly_one_proceeds(tmp_path):
    """All start at the same time; none ends before each has had its answer."""
    for checkout in ("one", "two"):
        (tmp_path / checkout).mkdir()
    results = tmp_path / "one" / "results" / "smoke"
    results.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    spellings = [
        "results/smoke",
        "../one/results/smoke",
        str(results),
        "./results//smoke",
        f"{tmp_path}/link/results/smoke",
    ]
    runs = [("one", spelling) for spelling in spellings] + [("two", "../one/results/smoke"), ("two", str(results))]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD_ONE, spelling],
            cwd=tmp_path / checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for checkout, spelling in runs
    ]
    try:
        told = [process.stdout.readline() for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    assert told.count("held\n") == 1, told
    assert sum(line.startswith("another run ") for line in told) == len(runs) - 1, told


def without_flock(monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(running.fcntl, "flock", refuse)


@pytest.mark.parametrize("flock", [True, False])
@pytest.mark.parametrize(
    "changes", [{"pid": 2**22 + 1}, {"boot": "another"}, {"began": "1"}, {"ended": True}, {"host": "x", "ended": True}]
)
def test_what_a_dead_process_or_an_earlier_boot_left_blocks_nobody(holders, monkeypatch, flock, changes):
    left_behind(record(**changes))
    if not flock:
        without_flock(monkeypatch)
    assert running.who_runs("results/smoke") is None
    running.hold("results/smoke")
    assert running.who_runs("results/smoke")["pid"] == os.getpid()


def test_without_flock_a_live_process_is_known_by_its_record(holders, monkeypatch):
    left_behind(record())
    assert running.who_runs("results/smoke") is None  # its lock is free, so it cannot live
    without_flock(monkeypatch)
    with pytest.raises(UserError, match=f"another run is at work on results/smoke .process {os.getppid()} on "):
        running.hold("results/smoke")


def test_another_machine_has_the_folder_as_long_as_its_heart_beats(holders):
    path = left_behind(record(host="another-machine", pid=7))
    with pytest.raises(UserError, match="process 7 on another-machine"):
        running.hold("results/smoke")
    os.utime(path, (0, path.stat().st_mtime - running.SILENCE - 1))
    running.hold("results/smoke")
    assert [file.name for file in path.parent.iterdir()] == [running.NAME]


def test_a_live_run_renews_its_lock_and_an_ended_one_says_so(holders, monkeypatch):
    monkeypatch.setattr(running, "BEAT", 0.01)
    running.hold("results/smoke")
    path = running._file("results/smoke")
    os.utime(path, (0, 0))
    while path.stat().st_mtime == 0:
        pass
    (handle,) = running._held.values()
    running._end(handle)
    assert json.loads(path.read_text())["ended"] is True
