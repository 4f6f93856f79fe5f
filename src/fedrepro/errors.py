"""Errors that a user can fix: one line that names the file, the key and the nearest valid name."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path


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
    """`; did you mean 'fedavg'?` if a candidate is close to `name`, else the list of valid names."""
    candidates = sorted(map(str, candidates))
    close = difflib.get_close_matches(str(name), candidates, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; valid: {', '.join(candidates)}" if candidates else ""
