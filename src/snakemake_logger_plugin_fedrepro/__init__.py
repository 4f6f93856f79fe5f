"""Snakemake's output as one progress line: jobs done, time passed, time left, running jobs. On a terminal the line is
rewritten in place and never wider than it; a file gets one line per 5 % or 30 s. Errors and warnings are shown at once,
errors with the end of the job's log."""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_fedrepro.estimate import Estimate

STEP = 5  # per cent of the jobs between two lines of a file
PAUSE = 30.0  # at most so many seconds between two lines of a file
WIDTH = 80  # of a terminal that does not tell its own
LOG_LINES = 3
#: of this run; the workflow's onstart hook names the plan's file
estimate = Estimate()


class LogHandler(LogHandlerBase):
    writes_to_stream = has_filter = has_formatter = True
    writes_to_file = needs_rulegraph = False

    def __post_init__(self) -> None:
        check_cache()
        self.start = time.monotonic()
        self.jobs: dict[int, str] = {}
        self.finished = self.failed = 0
        self.last, self.said = 0, self.start  # the per cent and the time of a file's last line
        self.terminal = sys.stderr.isatty()
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        """Update the clock while long jobs run."""
        while True:
            time.sleep(1.0)
            if estimate.running and self.lock:
                with self.lock:
                    self._line()

    def emit(self, record: Any) -> None:
        event = getattr(record, "event", None)
        now = time.monotonic()
        if event == LogEvent.RUN_INFO and getattr(record, "stats", None):
            estimate.planned = {k: v for k, v in record.stats.items() if k != "total"}
        elif event == LogEvent.RESOURCES_INFO:
            estimate.lanes = getattr(record, "cores", None) or getattr(record, "nodes", None) or estimate.lanes
        elif event == LogEvent.JOB_INFO:
            self.jobs[record.jobid] = record.rule_msg or record.rule_name
            wildcards = getattr(record, "wildcards", None) or {}
            name = "/".join(str(wildcards.get(key)) for key in ("study", "experiment", "algorithm", "shard"))
            estimate.begin(record.jobid, record.rule_name, name, now)
            if self.common_settings.dryrun:
                self._say(self.jobs[record.jobid])
            else:
                self._line()
        elif event == LogEvent.JOB_FINISHED:
            estimate.finish(record.job_id, now)
            self.finished += 1
            self._line(self.jobs.get(record.job_id, ""))
        elif event == LogEvent.GROUP_ERROR:  # the errors of its jobs follow
            self._say("\n".join(["failed, in one job of the cluster:", *_ends(record.aux_logs)]))
        elif event == LogEvent.JOB_ERROR:
            self.failed += 1
            estimate.drop(getattr(record, "jobid", -1))
            self._say(self._failure(record))
        elif self._worth_saying(record, event):
            self._say(self._another_run(record) or record.getMessage())

    def _worth_saying(self, record: logging.LogRecord, event: LogEvent | None) -> bool:
        """Errors (not that a job's command failed: the job's own error follows), warnings, everything in a dry run."""
        text = record.getMessage()
        if text.startswith("Failed to setup log file"):  # the workflow's hooks name the folder
            return False
        if event is not None:
            return event == LogEvent.ERROR and "CalledProcessError" not in text
        return record.levelno >= logging.WARNING or (self.common_settings.dryrun and text not in ("", "None"))

    def _another_run(self, record: logging.LogRecord) -> str | None:
        """Replaces snakemake's page about locks: which run uses the folder."""
        from fedrepro.workflow.run_lock import busy  # here: every snakemake command loads this plugin

        locked = getattr(record, "exception", None) == "LockException"
        return f"error: {line}" if locked and (line := busy()) else None

    def _line(self, finished: str = "") -> None:
        total, now = sum(estimate.planned.values()), time.monotonic()
        if not total:
            return
        done = 100 * self.finished // total
        left = estimate.left(now)
        parts = [f"{self.finished}/{total} jobs", f"{done} %", f"{_clock(now - self.start)} gone"]
        known = f"{'very roughly' if estimate.is_rough else 'about'} {_clock(left)} left" if left is not None else ""
        parts += [known or "estimating the time left"]
        parts += [f"{self.failed} failed"] if self.failed else []
        running = [self.jobs[job] for job in estimate.running if job in self.jobs]
        more = f"(+{len(running) - 1}) " if len(running) > 1 else ""
        parts += [more + running[-1] if running else finished]
        if self.terminal:
            line, width = " · ".join(parts), _columns() - 1  # the last column would wrap on some terminals
            line = line if len(line) <= width else f"{line[: width - 1]}…"
            self._say(line, end="\n" if self.finished == total else "")
        elif (finished and (done // STEP > self.last // STEP or self.finished == total)) or now - self.said >= PAUSE:
            self.last, self.said = done, now
            self._say(" · ".join(parts))

    def _failure(self, record: logging.LogRecord) -> str:
        rule = getattr(record, "rule_name", "a job")
        lines = [f"failed: {self.jobs.get(getattr(record, 'jobid', -1), rule)}"]
        lines += [f"  {message}"] if (message := getattr(record, "rule_msg", None)) else []  # from the cluster
        return "\n".join([*lines, *_ends(getattr(record, "log", None) or [])])

    def _say(self, text: str, end: str = "\n") -> None:
        sys.stderr.write(("\r\x1b[K" if self.terminal else "") + text + end)
        sys.stderr.flush()


def check_cache() -> None:
    """End with one line if the user's cache folder is not writable: snakemake needs it before the Snakefile."""
    from snakemake.common import get_appdirs  # here: every snakemake command loads this plugin

    from fedrepro.errors import UserError
    from fedrepro.files import check_writable

    try:
        check_writable(Path(get_appdirs().user_cache_dir))
    except UserError as error:
        sys.exit(f"error: {error}; set XDG_CACHE_HOME to a folder that can be")


def _ends(logs: Iterable[object]) -> list[str]:
    """The last lines of each existing log, and its path."""
    lines = []
    for path in (path for path in map(Path, map(str, logs)) if path.exists()):
        lines += [f"  {text}" for text in path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]]
        lines.append(f"  log: {path}")
    return lines


def _columns() -> int:
    """Of the terminal behind stderr."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
