"""Errors that a user can fix: one line that names the file, the key and the nearest valid name."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

LONGEST = 480  # characters of a message: with the name of a program in front, a line stays below 500
LONGEST_NAME = 100  # characters of a name that are compared
MOST_NAMES = 12  # listed in an error


class UserError(Exception):
    """Wrong input: one line, shown without a traceback. Line breaks and control characters in it are escaped; a long
    text is shortened in the middle, between the file and what is wrong with it."""

    def __init__(self, text: str) -> None:
        plain = re.sub(
            r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: ascii(found[0])[1:-1], shortened(text, LONGEST)
        )
        super().__init__(shortened(plain, LONGEST))


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and its end if it has more than `most` characters."""
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]} … {text[-end:]}"


class Damaged(UserError):
    """A file whose content is not what was written."""

    def __init__(self, path: Path, why: str = "its checksum is not the recorded one") -> None:
        super().__init__(f"{path}: damaged: {why}; the next run makes it again")
        self.path = Path(path)


def nearest(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean 'fedavg'?` and up to two more names if some are close to `name`; else the valid names, or of
    many the three nearest."""
    candidates, name = sorted(str(candidate)[:LONGEST_NAME] for candidate in candidates), str(name)[:LONGEST_NAME]
    close = difflib.get_close_matches(name, candidates, n=3, cutoff=0.5)
    if close:
        others = f" (or {', '.join(close[1:])})" if close[1:] else ""
        return f"; did you mean '{close[0]}'?{others}"
    if len(candidates) > MOST_NAMES:
        near = difflib.get_close_matches(name, candidates, n=3, cutoff=0.0)
        return f"; the nearest of {len(candidates)} names: {', '.join(near)}"
    listed = ", ".join(candidates)
    return f"; valid: {listed}" if candidates else ""
