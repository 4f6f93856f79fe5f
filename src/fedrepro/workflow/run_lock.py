"""One run at a time on a results folder, and no lock that outlives its run.

A killed run leaves snakemake's lock, a file, behind, and the next one needs `--unlock`. So a run also holds a second
file locked by flock, which the kernel frees however the run ends. If that file is free and was last held on this
machine, snakemake's locks on the same results are left over and are removed.
"""

import contextlib
import fcntl
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError
from fedrepro.files import sha256_of

FOLDER = Path(".snakemake")
PATIENCE = 10.0  # seconds: others lock the file for a moment when they check it

_held: dict[Path, int] = {}  # open files: closing one frees its lock


def clear_left_overs(results: str, say: Callable[[str], None]) -> None:
    """Remove the locks of a run on `results` that was killed on this machine."""
    mine = [lock for lock in (FOLDER / "locks").glob("*.lock") if f"\n{results}/" in f"\n{_text(lock)}"]
    last = _record(_file(results))
    if mine and last.get("host") == platform.node() and who_runs(results) is None:
        for lock in mine:
            lock.unlink(missing_ok=True)
        say(f"the run of process {last.get('pid')} was killed: its locks are removed, and its results are kept")


def hold(results: str) -> None:
    """Lock the folder until this process ends; UserError if another run has it."""
    try:
        _file(results).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(_file(results), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return  # not writable: snakemake reports it
    deadline = time.monotonic() + PATIENCE
    while not _lock(handle):
        if time.monotonic() > deadline:
            os.close(handle)
            raise UserError(busy(results) or f"another run began on {results} in the same moment: start again")
        time.sleep(0.2)
    record = {"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M"), "results": results}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(record).encode(), 0)
    _held[_file(results)] = handle


def who_runs(results: str) -> dict[str, Any] | None:
    """The record of the live run on `results`; None if there is none."""
    return _holder(_file(results))


def busy(results: str | None = None) -> str | None:
    """The error line for a second run (on any results if none are named); None if nothing runs."""
    files = [_file(results)] if results else sorted(FOLDER.glob("fedrepro/running-*"))
    run = next((found for path in files if (found := _holder(path)) is not None), None)
    if run is None:
        return None
    at, known = run.get("results", results), f"process {run.get('pid')} on {run.get('host')}, since {run.get('since')}"
    return f"another run is at work on {at} ({known}): wait for it to end, or take another folder or SCALE"


def _file(results: str) -> Path:
    return FOLDER / "fedrepro" / f"running-{sha256_of(results)[:16]}"


def _holder(path: Path) -> dict[str, Any] | None:
    if path in _held:
        return _record(path)
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        return None if _lock(handle) else _record(path)
    finally:
        os.close(handle)  # frees the lock


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without flock: only snakemake's own lock holds
    return True


def _record(path: Path) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        if isinstance(record := json.loads(_text(path)), dict):
            return record
    return {}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # just removed
