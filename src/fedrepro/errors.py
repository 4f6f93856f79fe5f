"""Errors that a user can mend: one line that names the file, the key and the nearest valid name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Wrong input. Its text is one line, meant to be shown without a traceback."""


def nearest(name: object, candidates: Iterable[str]) -> str:
    """`; did you mean 'fedavg'?` where a candidate is close to `name`, else the short list of what is valid."""
    candidates = sorted(map(str, candidates))
    close = difflib.get_close_matches(str(name), candidates, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; valid: {', '.join(candidates)}" if candidates else ""
