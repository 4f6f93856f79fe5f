"""Snakemake's output as one progress line: jobs done, time passed, time left, running jobs. On a terminal the line is
rewritten in place; a file gets one line per finished job. Errors and warnings are shown at once, errors with the end of
the job's log."""

import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

#: seconds per job of a rule, until the first has finished
EXPECTED = defaultdict(lambda: 2.0, train_algorithm=10.0, execute_notebook=6.0, all=0.0)
LOG_LINES = 3


class LogHandler(LogHandlerBase):
    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.start = time.monotonic()
        self.planned: dict[str, int] = {}
        self.spent: dict[str, list[float]] = defaultdict(list)
        self.jobs: dict[int, tuple[str, str]] = {}
        self.running: dict[int, float] = {}
        self.finished = self.failed = 0
        self.terminal = sys.stderr.isatty()
        if self.terminal:
            threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        """Update the clock while long jobs run."""
        while True:
            time.sleep(1.0)
            if self.running and self.lock:
                with self.lock:
                    self._line()

    def emit(self, record: Any) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and getattr(record, "stats", None):
            self.planned = {k: v for k, v in record.stats.items() if k != "total"}
        elif event == LogEvent.JOB_INFO:
            self.jobs[record.jobid] = (record.rule_name, record.rule_msg or record.rule_name)
            self.running[record.jobid] = time.monotonic()
            if self.common_settings.dryrun:
                self._say(self.jobs[record.jobid][1])
            else:
                self._line()
        elif event == LogEvent.JOB_FINISHED:
            rule, message = self.jobs.get(record.job_id, ("", ""))
            started = self.running.pop(record.job_id, time.monotonic())
            self.spent[rule].append(time.monotonic() - started)
            self.finished += 1
            self._line(message)
        elif event == LogEvent.GROUP_ERROR:  # the errors of its jobs follow
            self._say("\n".join(["failed, in one job of the cluster:", *_ends(record.aux_logs)]))
        elif event == LogEvent.JOB_ERROR:
            self.failed += 1
            self.running.pop(getattr(record, "jobid", -1), None)
            self._say(self._failure(record))
        elif self._worth_saying(record, event):
            self._say(self._another_run(record) or record.getMessage())

    def _worth_saying(self, record: logging.LogRecord, event: LogEvent | None) -> bool:
        """Errors (not that a job's command failed: the job's own error follows), warnings, everything in a dry run."""
        text = record.getMessage()
        if event is not None:
            return event == LogEvent.ERROR and "CalledProcessError" not in text
        return record.levelno >= logging.WARNING or (self.common_settings.dryrun and text not in ("", "None"))

    def _another_run(self, record: logging.LogRecord) -> str | None:
        """Replaces snakemake's page about locks: which run uses the folder."""
        from fedrepro.workflow.run_lock import busy  # here: every snakemake command loads this plugin

        locked = getattr(record, "exception", None) == "LockException"
        return f"error: {line}" if locked and (line := busy()) else None

    def left(self) -> float:
        """Seconds left, at the pace so far."""
        remaining = done = 0.0
        for rule, count in self.planned.items():
            spent = self.spent[rule]
            each = sum(spent) / len(spent) if spent else EXPECTED[rule]
            done += sum(spent)
            remaining += max(0, count - len(spent)) * each
        now = time.monotonic()
        remaining -= sum(min(now - s, EXPECTED[self.jobs[j][0]]) for j, s in self.running.items())
        lanes = max(1.0, done / max(1e-9, now - self.start)) if self.finished > 2 else 1.0
        return max(0.0, remaining) / lanes

    def _line(self, finished: str = "") -> None:
        total = sum(self.planned.values())
        if not total or (not self.terminal and not finished):
            return
        parts = [f"{self.finished}/{total} jobs", f"{100 * self.finished // total} %"]
        parts += [f"{_clock(time.monotonic() - self.start)} gone, about {_clock(self.left())} left"]
        parts += [f"{self.failed} failed"] if self.failed else []
        running = [self.jobs[j][1] for j in self.running]
        now = running[-1] + (f" (+{len(running) - 1})" if len(running) > 1 else "") if running else finished
        if self.terminal:
            self._say(" · ".join([*parts, now])[:200], end="\n" if self.finished == total else "")
        else:
            self._say(" · ".join([*parts, f"done: {finished}"]))

    def _failure(self, record: logging.LogRecord) -> str:
        rule = getattr(record, "rule_name", "a job")
        lines = [f"failed: {self.jobs.get(getattr(record, 'jobid', -1), ('', rule))[1]}"]
        lines += [f"  {message}"] if (message := getattr(record, "rule_msg", None)) else []  # from the cluster
        return "\n".join([*lines, *_ends(getattr(record, "log", None) or [])])

    def _say(self, text: str, end: str = "\n") -> None:
        sys.stderr.write(("\r\x1b[K" if self.terminal else "") + text + end)
        sys.stderr.flush()


def _ends(logs: Iterable[object]) -> list[str]:
    """The last lines of each existing log, and its path."""
    lines = []
    for path in (path for path in map(Path, map(str, logs)) if path.exists()):
        lines += [f"  {text}" for text in path.read_text(errors="replace").splitlines()[-LOG_LINES:]]
        lines.append(f"  log: {path}")
    return lines


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
