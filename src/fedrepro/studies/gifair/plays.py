"""Project Gutenberg's #100, the complete works of Shakespeare, split into plays, speaking roles and their texts.

The rules are those of LEAF (Caldas et al. 2018, data/shakespeare), so that the roles and their texts are LEAF's:
- a work starts at the line `by William Shakespeare`; its title is the nearest line above that is not blank. A work
  with fewer than two roles is no play (the sonnets, A Lover's Complaint);
- a speech starts at a line of two blanks, the role's name, a full stop and a blank (`  HAMLET. To be, …`). Names are
  letters and blanks, in any case. Following lines of four blanks or more continue the speech, stage directions among
  them. All other lines are skipped and do not end the speech;
- The Comedy of Errors is not indented: names and continuations start in the first column, a line that starts with
  `<` (the publisher's notice) or an `ACT …. ` heading ends the speech;
- a role of two lines or fewer is left out;
- a role's text is all of its lines, each followed by a blank, with runs of blanks as one blank.

Consequences, kept because LEAF's clients have them: names are as the file abbreviates them (HAM, FAL); a person with
two names is two roles (GLOUCESTER and KING RICHARD of Richard III); `MRS. PAGE.` and `MRS. FORD.` of The Merry Wives
of Windsor are one role, MRS; FIRST LORD is one role in every scene of a play.

LEAF cuts by line number in two places (the first work, the end of the file); the rule of two roles has the same effect.
"""

import re
from itertools import pairwise
from pathlib import Path

from fedrepro.errors import UserError

AUTHOR = "by William Shakespeare"
UNINDENTED = "THE COMEDY OF ERRORS"
LINES_AT_LEAST = 3

_NAME = r"([A-Za-z][A-Za-z ]*)\. (.*)"
_SPEECH = re.compile("  " + _NAME)
_SPEECH_UNINDENTED = re.compile(_NAME)
_CONTINUATION = " " * 4
_BLANKS = re.compile("  +")

Play = dict[str, list[str]]  # role → its lines


def read_roles(path: Path) -> dict[tuple[str, str], str]:
    """(play, role) → text, in the order in which the roles first speak."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: byte {error.object[error.start]:#04x} at {error.start}") from None
    plays = split_plays(text)
    if not plays:
        raise UserError(f"{path}: no play found: no line '{AUTHOR}' is followed by speeches of two roles")
    return {
        (title, role): speech(lines)
        for title, roles in plays
        for role, lines in roles.items()
        if len(lines) >= LINES_AT_LEAST
    }


def split_plays(text: str) -> list[tuple[str, Play]]:
    """Every work with at least two roles: its title, and each role's lines."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.strip() == AUTHOR]
    works = []
    for start, end in pairwise([*starts, len(lines)]):
        title = next((line.strip() for line in reversed(lines[:start]) if line.strip()), "")
        works.append((title, _roles(lines[start + 1 : end], title)))
    return [(title, roles) for title, roles in works if len(roles) > 1]


def speech(lines: list[str]) -> str:
    """A role's lines as one text."""
    return _BLANKS.sub(" ", " ".join([*lines, ""]))


def _roles(lines: list[str], title: str) -> Play:
    indented = title != UNINDENTED
    starts_speech = _SPEECH if indented else _SPEECH_UNINDENTED
    roles: Play = {}
    speaker = None
    for line in lines:
        if match := starts_speech.match(line):
            speaker = match[1].upper()
            if not indented and speaker.startswith("ACT "):
                speaker = None
            else:
                roles.setdefault(speaker, []).append(match[2])
        elif speaker is None:
            continue
        elif not indented and line.startswith("<"):
            speaker = None
        elif not indented:
            roles[speaker].append(line)
        elif line.startswith(_CONTINUATION):
            roles[speaker].append(line[len(_CONTINUATION) :])
    return roles
