"""Jobs that stay pending in slurm's queue are named with slurm's reason: a job that no node can run would otherwise
wait in silence. FEDREPRO_PENDING_SECONDS sets the patience."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fedrepro.errors import UserError

VARIABLE = "FEDREPRO_PENDING_SECONDS"
PATIENCE = 60.0  # seconds
LOOKS = 4  # at the queue, per patience
ANSWER = 30.0  # seconds for squeue; a busy controller is asked again at the next look
NAMED = 5  # jobs per line, at most


class Pending:
    """The pending jobs of one run, since when each was seen, and which were told."""

    def __init__(self, patience: float):
        self.patience = patience
        self.since: dict[str, float] = {}
        self.told: set[tuple[str, str]] = set()

    def look(self, reasons: Mapping[str, str], now: float) -> Iterator[str]:
        """One line per reason for the jobs (id → reason) that became overdue, or got another reason since."""
        self.since = {job: self.since.get(job, now) for job in reasons}
        overdue: dict[str, list[str]] = {}
        for job, reason in reasons.items():
            if now - self.since[job] >= self.patience and (job, reason) not in self.told:
                self.told.add((job, reason))
                overdue.setdefault(reason, []).append(job)
        for reason, jobs in overdue.items():
            more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
            which = f"slurm job{'s' if len(jobs) > 1 else ''} {', '.join(jobs[:NAMED])}{more}"
            yield f"{which} pending for {self.patience:g} s or longer; slurm's reason: {reason}"


def watch(workflow: Any, tell: Callable[[str], None]) -> None:
    """Look at the queue from a thread that ends with this process, if slurm runs the jobs."""
    patience = _patience()
    run = getattr(workflow.scheduler._executor, "run_uuid", None)  # the name that slurm's executor gives to its jobs
    if run is not None:
        threading.Thread(target=_tell_all, args=(run, patience, tell), daemon=True).start()


def _tell_all(run: str, patience: float, tell: Callable[[str], None]) -> None:
    for line in overdue(run, patience):
        tell(line)


def overdue(run: str, patience: float) -> Iterator[str]:
    """The lines about a run's jobs, for ever; none where squeue is not installed."""
    pending = Pending(patience)
    while True:
        try:
            yield from pending.look(_reasons(run), time.monotonic())
        except FileNotFoundError:
            return
        except (OSError, subprocess.SubprocessError):
            pass  # the controller does not answer: nothing is known about the queue
        time.sleep(patience / LOOKS)


def _reasons(run: str) -> dict[str, str]:
    """The run's pending jobs: id → reason."""
    command = ["squeue", "--noheader", "--states=PENDING", f"--name={run}", "--format=%i %r"]
    asked = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=ANSWER, check=True)
    return dict(line.strip().split(" ", 1) for line in asked.stdout.splitlines() if " " in line.strip())


def _patience() -> float:
    text = os.environ.get(VARIABLE, "")
    try:
        seconds = float(text or PATIENCE)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise UserError(f"{VARIABLE}: a positive number of seconds is needed, not {text[:50]!r}")
    return seconds
