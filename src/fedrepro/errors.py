"""Errors that a user can fix: one line that names the file, the key and the nearest valid name."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

LONGEST = 480  # characters of a message: with the name of a program in front, a line stays below 500
LONGEST_NAME = 100  # characters of a name that are compared
LONGEST_LIST = 240  # characters of a list of valid names


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
    """`; did you mean 'fedavg'?` if a candidate is close to `name`, else the list of valid names, or its beginning."""
    candidates = sorted(str(candidate)[:LONGEST_NAME] for candidate in candidates)
    close = difflib.get_close_matches(str(name)[:LONGEST_NAME], candidates, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    listed = ", ".join(candidates)
    if len(listed) > LONGEST_LIST:
        whole = listed[:LONGEST_LIST].rpartition(", ")[0] or listed[:LONGEST_NAME]
        listed = f"{whole}, … ({len(candidates)} in all)"
    return f"; valid: {listed}" if candidates else ""
