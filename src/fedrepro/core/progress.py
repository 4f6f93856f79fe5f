"""The line in a job's log that says how far it has come."""

import sys
import time
from typing import TextIO


class Progress:
    """`say(done)` writes `round 40/160 · 25 % · 3.1 s, 9.3 s left · loss 0.12` to stderr (the job's log)."""

    def __init__(self, total: int, every: float = 3.0, stream: TextIO | None = None):
        self.total, self.every, self.stream = total, every, stream or sys.stderr
        self._start = self._last = time.monotonic()
        self._first: int | None = None

    def say(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        self._first = done - 1 if self._first is None else self._first
        if done < self.total and now - self._last < self.every:
            return
        self._last, elapsed = now, now - self._start
        left = elapsed / max(1, done - self._first) * (self.total - done)
        parts = (f"round {done}/{self.total}", f"{done / self.total:.0%}", f"{elapsed:.1f} s, {left:.1f} s left", note)
        self.line(" · ".join(filter(None, parts)))

    def line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()
