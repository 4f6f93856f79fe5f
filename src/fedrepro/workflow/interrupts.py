"""A run that is stopped ends with one line: by SIGINT, SIGHUP or SIGTERM, or because its results folder was deleted."""

import contextlib
import os
import signal
import sys
from typing import Any, NoReturn

from fedrepro.workflow import run_lock

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
PATIENCE = 5.0  # seconds for jobs to end before they are killed


def end_with_one_line(workflow: Any) -> None:
    """Handle the signals of this process from now on. A signal that is ignored (`nohup`) stays so. Snakemake sets a
    handler of its own when it starts its jobs, so this is called again then."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: _stop(workflow, number))


def _stop(workflow: Any, number: int) -> NoReturn:
    told = f"stopped by {signal.Signals(number).name}: finished results are kept, and the same command continues"
    stop(workflow, told, 128 + number)


def stop(workflow: Any, told: str, code: int = 1) -> NoReturn:
    """End this process and its jobs, and say why in one line."""
    for number in SIGNALS:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, signal.SIG_IGN)
    os.write(2, (("\r\x1b[K" if sys.stderr.isatty() else "") + told + "\n").encode())
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)  # what snakemake and the jobs say about their end says nothing new
        os.dup2(nowhere.fileno(), 2)
        with contextlib.suppress(Exception):
            if not workflow.local_exec:
                workflow.scheduler._executor.cancel()
        _end_children()
        with contextlib.suppress(Exception):
            workflow.persistence.unlock()
        with contextlib.suppress(Exception):
            workflow._snakemake_tmp_dir.cleanup()
        run_lock.release()
    os._exit(code)


def _end_children() -> None:
    import psutil  # here: only a run that is stopped needs it

    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            child.kill()
