"""A run that is stopped ends with one line: by SIGINT, SIGHUP or SIGTERM, or because its results folder was deleted."""

import _signal  # `signal` and `typing` take longer to import than all of this, and until then no signal is handled
import contextlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

SIGNALS = (_signal.SIGINT, _signal.SIGHUP, _signal.SIGTERM)
PATIENCE = 5.0  # seconds for jobs to end before they are killed


def end_with_one_line(workflow: "Any") -> None:
    """Handle the signals of this process from now on, and those that it held back. A signal that is ignored (`nohup`)
    stays so. Snakemake sets a handler of its own when it starts its jobs, so this is called again then.
    workflow: None before there is one."""
    for number in SIGNALS:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, lambda number, _: _stop(workflow, number))
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, SIGNALS)


@contextlib.contextmanager
def held_back() -> "Iterator[None]":
    """Hold the signals back. A process that is started within this block does so until it is ready for them: Python
    itself, which takes longer to start than launch.py, ends with a traceback or without a word."""
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def end_with_parent(workflow: "Any") -> None:
    """End this snakemake of a cluster job, and its jobs, with the process that started it. The shell of a cancelled
    job ends at once, but snakemake takes SIGTERM as a request to finish what runs. Where slurm finds processes by their
    parents (proctrack/linuxproc), it would outlive its job by some seconds."""
    _signal.signal(_signal.SIGHUP, lambda *_: stop(workflow, "stopped: the cluster job has ended"))
    signal_at_parents_end(_signal.SIGHUP)


def signal_at_parents_end(number: int) -> None:
    """Have the kernel send this process a signal when its parent ends; a fork does not inherit that."""
    import ctypes  # here: see above

    with contextlib.suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


def told_of(number: int) -> str:
    """The line of a run that a signal stopped."""
    import signal

    return f"stopped by {signal.Signals(number).name}: finished results are kept, and the same command continues"


def _stop(workflow: "Any", number: int) -> "NoReturn":
    stop(workflow, told_of(number), 128 + number)


def stop(workflow: "Any", told: str, code: int = 1) -> "NoReturn":
    """End this process and its jobs, and say why in one line."""
    for number in SIGNALS:
        with contextlib.suppress(ValueError):  # not in the main thread
            _signal.signal(number, _signal.SIG_IGN)
    os.write(2, (("\r\x1b[K" if sys.stderr.isatty() else "") + told + "\n").encode())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what snakemake and the jobs say about their end says nothing new
    os.dup2(nowhere, 2)
    if workflow is not None:
        for step in (_cancel, _end_children, _remove_files, _release):
            with contextlib.suppress(Exception):  # a signal may come before what a step needs is made or imported
                step(workflow)
    os._exit(code)


def _cancel(workflow: "Any") -> None:
    if not workflow.local_exec:
        workflow.scheduler._executor.cancel()


def _remove_files(workflow: "Any") -> None:
    """Snakemake's locks and temporary folders."""
    with contextlib.suppress(Exception):
        workflow.persistence.unlock()
    for folder in (workflow._snakemake_tmp_dir, workflow.sourcecache.runtime_cache):
        if folder is not None:
            folder.cleanup()


def _release(_workflow: "Any") -> None:
    from fedrepro.workflow import run_lock  # here: see TYPE_CHECKING

    run_lock.release()


def _end_children(_workflow: "Any") -> None:
    import psutil  # here: only a run that is stopped needs it

    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            child.kill()
