"""Around every job: its inputs are checked and its outputs sealed, output goes to a log, an error of the user ends it
with one line, local jobs start at once."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrepro.core.checksums import check, seal, unseal
from fedrepro.errors import Damaged, UserError
from fedrepro.workflow import damage


@contextmanager
def job(snakemake: Any, *also: str) -> Iterator[None]:
    """Run a rule's script: check its inputs, and files below the results folder that match `also`; seal its outputs at
    the end. A damaged input is noted, so that the next run makes it again."""
    with logged(snakemake.log[0]):
        results = Path(snakemake.log[0].rpartition(f"/logs/{snakemake.rule}")[0])
        unseal(snakemake.output)
        try:
            for path in (*map(Path, snakemake.input), *(path for pattern in also for path in results.glob(pattern))):
                # data is checked when it is loaded, against its json file
                check(path.with_suffix(".json") if path.suffix == ".npz" else path)
            yield
        except Damaged as error:
            damage.note(results, error.path)
            raise
        seal(snakemake.output)


@contextmanager
def logged(path: str) -> Iterator[None]:
    """Send all output, also of libraries, to the log. An error goes to the log and, in one line, to the terminal."""
    terminal = os.dup(2)
    with open(path, "w", encoding="utf-8", buffering=1) as log:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except UserError as error:
            _end(terminal, f"error: {error}")
        except KeyboardInterrupt:  # the run, which was interrupted too, says so
            os._exit(1)
        except BaseException as error:
            traceback.print_exc()
            last = (str(error).strip().splitlines() or [""])[0][:300]
            _end(terminal, f"{type(error).__name__}: {last} (see {path})")


def _end(terminal: int, line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
    os.write(terminal, (line + "\n").encode())
    os._exit(1)  # at once: nothing else is printed


def lift_rate_limit(workflow: Any) -> None:
    """Remove the limit of jobs per second in a local run; a cluster's queue keeps it. The limiter rechecks the queue
    every second, in one more chain per finished job: with 200 jobs, minutes wasted."""
    if workflow.local_exec and "job_rate_limiter" in vars(workflow.scheduler):
        workflow.scheduler.job_rate_limiter = None
