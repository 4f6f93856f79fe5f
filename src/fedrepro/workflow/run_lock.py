"""One run at a time on a results folder, and no lock that outlives its run.

A run holds `.run.lock` in the results folder, however the folder is named and from whichever checkout, by flock: the
kernel frees it however the run ends. NFS passes flock on to its server, so it holds between machines. Where it does not
(`nolock`, or a file system without flock), the record in the file decides: host, boot, process, and the time of the
file, which a live run renews every BEAT seconds. A process that is gone and a machine that was booted anew block
nobody; a machine that vanished blocks others for SILENCE seconds.

A killed run also leaves snakemake's own lock, a file, behind, and the next one needs `--unlock`. If nobody holds the
folder, snakemake's locks on the same results are left over and are removed.
"""

import atexit
import contextlib
import fcntl
import json
import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrepro.errors import UserError

LOCKS = Path(".snakemake") / "locks"
NAME = ".run.lock"
PATIENCE = 10.0  # seconds: others lock the file for a moment when they check it
BEAT = 20.0
SILENCE = 90.0

_held: dict[tuple[int, int], int] = {}  # device and inode → open file: closing one frees its lock
_asked: list[str] = []  # results folders of this process


def clear_left_overs(results: str, say: Callable[[str], None]) -> None:
    """Remove snakemake's locks of a run on `results` that was killed on this machine."""
    _asked.append(results)
    mine = [lock for lock in LOCKS.glob("*.lock") if f"\n{results}/" in f"\n{_text(lock)}"]
    last = _record(_file(results))
    if mine and last.get("host") == platform.node() and who_runs(results) is None:
        for lock in mine:
            lock.unlink(missing_ok=True)
        say(f"the run of process {last.get('pid')} was killed: its locks are removed, and its results are kept")


def hold(results: str, gone: Callable[[str], None] = lambda told: None) -> None:
    """Lock the folder until this process ends; UserError if another run has it. gone: called if it is deleted."""
    try:
        _file(results).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(_file(results), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return  # not writable: named by the check that follows
    deadline = time.monotonic() + PATIENCE
    while not _take(handle, _file(results)):
        if time.monotonic() > deadline:
            os.close(handle)
            raise UserError(busy(results) or f"another run began on {results} in the same moment: start again")
        time.sleep(0.2)
    record = {"pid": os.getpid(), "host": platform.node(), "boot": _boot(), "began": _began(os.getpid())}
    _write(handle, {**record, "since": time.strftime("%Y-%m-%d %H:%M")})
    _held[_identity(handle)] = handle
    threading.Thread(target=_beat, args=(handle, results, gone), daemon=True).start()
    atexit.register(_end, handle)


def release() -> None:
    """Say that this run has ended, before the process does."""
    for handle in _held.values():
        _end(handle)


def deleted(results: str) -> str | None:
    """The error line if the folder that this process holds was deleted or moved; None if it is there."""
    there = all(os.fstat(handle).st_nlink for handle in _held.values())
    return None if there else f"error: {results}: was deleted during the run"


def who_runs(results: str) -> dict[str, Any] | None:
    """The record of the live run on `results`; None if there is none."""
    path = _file(results)
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        free = _identity(handle) not in _held and _take(handle, path)
        return None if free else _record(path)
    finally:
        os.close(handle)  # frees the lock


def busy(results: str | None = None) -> str | None:
    """The error line for a second run (on the folders of this process if none is named); None if nothing runs."""
    for at in [results] if results else _asked:
        if (run := who_runs(at)) is not None:
            known = f"process {run.get('pid')} on {run.get('host')}, since {run.get('since')}"
            return f"another run is at work on {at} ({known}): wait for it to end, or take another folder or SCALE"
    return None


def _file(results: str) -> Path:
    return Path(results) / NAME


def _identity(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _take(handle: int, path: Path) -> bool:
    """Lock the file, unless another run has it."""
    works = True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        works = False  # a file system without flock
    if not _lives(_record(path), handle, path, works):
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def _lives(run: dict[str, Any], handle: int, path: Path, flock_works: bool) -> bool:
    """Whether the recorded run lives although its lock is free: on another machine, or without flock on this one."""
    if not run or run.get("ended"):
        return False
    if run.get("host") != platform.node():
        return _age(handle, path) < SILENCE
    own = run.get("pid") == os.getpid()
    began = _began(run.get("pid"))
    return not (flock_works or own or began is None) and (run.get("boot"), run.get("began")) == (_boot(), began)


def _age(handle: int, path: Path) -> float:
    """Seconds since the file was written, by the clock of its file system."""
    now = path.with_name(f"{NAME}.{platform.node()}.{os.getpid()}")
    try:
        now.touch()
        return now.stat().st_mtime - os.fstat(handle).st_mtime
    except OSError:
        return time.time() - os.fstat(handle).st_mtime
    finally:
        with contextlib.suppress(OSError):
            now.unlink()


def _beat(handle: int, results: str, gone: Callable[[str], None]) -> None:
    """Renew the time of the lock, and look whether its folder is still there."""
    renewed = time.monotonic()
    while True:
        time.sleep(min(BEAT, 1.0))
        try:
            if not os.fstat(handle).st_nlink:
                return gone(f"error: {results}: was deleted during the run")
            if time.monotonic() - renewed >= BEAT:
                os.utime(handle)
                renewed = time.monotonic()
        except OSError:
            return None  # closed, or the file system is gone


def _end(handle: int) -> None:
    """Say that the run has ended; forks of this process do not."""
    with contextlib.suppress(OSError, ValueError):
        record = json.loads(os.pread(handle, 4096, 0))
        if record["pid"] == os.getpid():
            _write(handle, {**record, "ended": True})


def _write(handle: int, record: dict[str, Any]) -> None:
    text = json.dumps(record).encode()
    os.pwrite(handle, text, 0)
    os.ftruncate(handle, len(text))


def _boot() -> str:
    """Changes with every boot of the machine; empty where it is unknown."""
    return _text(Path("/proc/sys/kernel/random/boot_id")).strip()


def _began(pid: object) -> str | None:
    """When a process began, in ticks since the boot; None if there is no such process."""
    return next(iter(_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[19:20]), None)


def _record(path: Path) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        if isinstance(record := json.loads(_text(path)), dict):
            return record
    return {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""  # just removed
