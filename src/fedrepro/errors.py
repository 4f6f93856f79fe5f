"""Errors that a user can fix: one line that names the file, the key and the nearest valid name."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

MOST_NAMES = 12  # listed in an error


class UserError(Exception):
    """Wrong input: one line, shown without a traceback. Line breaks and control characters in it are escaped."""

    def __init__(self, text: str) -> None:
        super().__init__(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: ascii(found[0])[1:-1], text))


class Damaged(UserError):
    """A file whose content is not what was written."""

    def __init__(self, path: Path, why: str = "its checksum is not the recorded one") -> None:
        super().__init__(f"{path}: damaged: {why}; the next run makes it again")
        self.path = Path(path)


def nearest(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean 'fedavg'?` and up to two more names if some are close to `name`; else the valid names, or of
    many the three nearest."""
    candidates = sorted(map(str, candidates))
    close = difflib.get_close_matches(str(name), candidates, n=3, cutoff=0.5)
    if close:
        others = f" (or {', '.join(close[1:])})" if close[1:] else ""
        return f"; did you mean '{close[0]}'?{others}"
    if len(candidates) > MOST_NAMES:
        near = difflib.get_close_matches(str(name), candidates, n=3, cutoff=0.0)
        return f"; the nearest of {len(candidates)} names: {', '.join(near)}"
    return f"; valid: {', '.join(candidates)}" if candidates else ""
