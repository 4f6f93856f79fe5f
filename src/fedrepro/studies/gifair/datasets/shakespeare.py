"""Shakespeare by speaking role (LEAF, Caldas et al. 2018, arXiv 1812.01097): 80 characters, predict the next.

Shapes: train x [N] uint8, all roles' texts one after the other, as numbers of VOCABULARY's 80 symbols; sample i is
x[start[i] : start[i] + 80], y [n] uint8 the symbol after it. A role of L characters has its L − 80 windows of stride 1,
all inside the role. client [n] = role; facts["client_names"] [roles]. No test split: the study cuts inside a role.

`roles`: `all`, LEAF's 1129 roles with 4,226,158 windows, in the file's order; or a set of shakespeare_roles.csv, the
role with most text first: `31` (927,159 windows) for the thesis' d = 31, `2` (35 roles, 989,678 windows) for its two
groups, with group [n] = 0 male, 1 female and facts["group_names"]. `samples`: the first windows of each role; 0: all.

The thesis (ch. 2, §2.5.2) only says that 31 roles are subsampled, and 25 males and 10 females, gender from the Folger
Shakespeare, and that male roles have more text. Ours are the 31 roles with most text, and the 25 male and 10 female
roles with most; the table lists every role down to the smallest of these with its gender, so that the choice can be
recomputed. The thesis cites q-FFL for the 31 roles, which samples LEAF's at random: 3,743 windows each, not 29,908.

Plays, roles and texts follow LEAF's rules (data/shakespeare) on Project Gutenberg's #100:
- a work starts at the line `by William Shakespeare`; its title is the nearest line above that is not blank. A work
  with fewer than two roles is no play (the sonnets, A Lover's Complaint; LEAF cuts by line number to the same effect);
- a speech starts at a line of two blanks, the role's name, a full stop and a blank (`  HAMLET. To be, …`). Names are
  letters and blanks, in any case. Following lines of four blanks or more continue the speech, stage directions among
  them. All other lines are skipped and do not end the speech;
- The Comedy of Errors is not indented: names and continuations start in the first column, a line that starts with
  `<` (the publisher's notice) or an `ACT …. ` heading ends the speech;
- a role of two lines or fewer is left out; the others' texts are their lines, with runs of blanks as one blank.
Hence names are as the file abbreviates them (HAM, FAL); a person with two names is two roles (GLOUCESTER and KING
RICHARD of Richard III); `MRS. PAGE.` and `MRS. FORD.` of The Merry Wives of Windsor are one role, MRS.

Symbols are LEAF's, `\\n` and `}` among them. LEAF maps any other character to −1; a text that has one is refused here.
Adjacent windows share 79 characters. After a random 70/10/20 cut inside a role (`inside: shuffled`, as in the thesis
and early LEAF) nearly all of the test text is in training windows too, which rewards memory. The honest cut is by
place, `inside: ordered`, where only windows at the seams overlap; later LEAF cuts so, and drops 79 at the seam.

The stand-in (`dialogue.py`) has the same number of roles, with the same lengths and genders. For `all` its lengths are
the quantiles of a log-normal law with LEAF's number of windows, and a role is female with probability 10/35.

Cite: S. Caldas et al., LEAF: a benchmark for federated settings, 2018. Text: Project Gutenberg #100.
"""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError, nearest
from fedrepro.files import ROOT
from fedrepro.studies.gifair.dialogue import dialogue

VOCABULARY = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
WINDOW = 80
GENDERS = ("male", "female")
SETS = ("31", "2")
TABLE = "config/studies/gifair/shakespeare_roles.csv"
ALL_ROLES, ALL_WINDOWS = 1129, 4_226_158
SPREAD = 1.53  # of the logarithm of a role's windows: √(2 ln(mean/median)) of LEAF's roles
AUTHOR = "by William Shakespeare"
UNINDENTED = "THE COMEDY OF ERRORS"
LINES_AT_LEAST = 3
SPEECH = r"([A-Za-z][A-Za-z ]*)\. (.*)"  # name and first line

Play = dict[str, list[str]]  # role → its lines


class Role(NamedTuple):
    """A row of the table."""

    play: str
    role: str
    gender: str
    characters: int  # of its whole text
    sets: tuple[str, ...]  # those of SETS that it is in


def shakespeare(source: Source, *, roles: str = "31", samples: int = 1000) -> Dataset:
    """The real text if its file is there, else the stand-in."""
    chosen, found = _chosen(roles), source.find("shakespeare")
    if found is None:
        lengths, female = _cast(chosen, source.rng)
        spoken = dialogue(source.rng, _limit(lengths, samples), female)
        texts = {f"role {i + 1}": text for i, text in enumerate(spoken)}
    else:
        (path,) = found.paths.values()
        roles_of = read_roles(path)
        by_role = select(roles_of, chosen, path) if chosen else long_enough(roles_of, path)
        texts = {f"{play}: {role}": text for (play, role), text in by_role.items()}
    kept = _limit(map(len, texts.values()), samples)
    symbols = [encode(text[:length]) for text, length in zip(texts.values(), kept, strict=True)]
    facts, group = {"client_names": np.array(list(texts))}, None
    if str(roles) == "2":
        group = np.array([GENDERS.index(role.gender) for role in chosen], dtype=np.uint8)
        facts["group_names"] = np.array(GENDERS)
    kind = "standin" if found is None else "real"
    return Dataset(kind, windows(symbols, group), outputs=len(VOCABULARY), facts=facts, found=found)


def shakespeare_size(roles: str = "31", samples: int = 1000, **_: object) -> tuple[int, int]:
    """(roles, windows) of the data set."""
    lengths, _female = _cast(_chosen(roles))
    return len(lengths), sum(length - WINDOW for length in _limit(lengths, samples))


def read_table(path: Path = ROOT / TABLE) -> list[Role]:
    """The rows of the table, the role with most text first."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        table = [Role(r["play"], r["role"], r["gender"], int(r["characters"]), tuple(r["sets"].split())) for r in rows]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UserError(f"{path}: each row needs play, role, gender, characters (a number) and sets") from None
    for row in table:
        if row.gender not in GENDERS or not set(row.sets) <= set(SETS):
            found = f"'{row.gender}', '{' '.join(row.sets)}'"
            raise UserError(f"{path}: {row.role} of '{row.play}': gender is one of {GENDERS}, sets of {SETS}: {found}")
    return table


def select(spoken: Mapping[tuple[str, str], str], chosen: Sequence[Role], path: Path) -> dict[tuple[str, str], str]:
    """The chosen roles' texts, in the order of the table; their lengths must be the table's."""
    texts = {}
    for row in chosen:
        name = f"{path}: {row.role} of '{row.play}', listed in shakespeare_roles.csv,"
        text = spoken.get((row.play, row.role))
        if text is None:
            raise UserError(f"{name} does not speak in this text")
        if len(text) <= WINDOW:
            raise UserError(f"{name} has {len(text)} characters: a window and its next symbol take {WINDOW + 1}")
        if len(text) != row.characters:
            raise UserError(f"{name} has {len(text)} characters, not {row.characters}: another edition of the text?")
        texts[row.play, row.role] = text
    return texts


def long_enough(spoken: Mapping[tuple[str, str], str], path: Path) -> dict[tuple[str, str], str]:
    """The roles with at least one window."""
    texts = {name: text for name, text in spoken.items() if len(text) > WINDOW}
    if not texts:
        raise UserError(f"{path}: no role has {WINDOW + 1} characters, which a window and its next symbol take")
    return texts


def read_roles(path: Path) -> dict[tuple[str, str], str]:
    """(play, role) → text, in the order in which the roles first speak."""
    try:
        plays = split_plays(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: byte {error.object[error.start]:#04x} at {error.start}") from None
    if not plays:
        raise UserError(f"{path}: no play found: no line '{AUTHOR}' is followed by speeches of two roles")
    return {
        (title, role): re.sub("  +", " ", " ".join([*lines, ""]))
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
        works.append((title, _roles(lines[start + 1 : end], indented=title != UNINDENTED)))
    return [(title, roles) for title, roles in works if len(roles) > 1]


def _roles(lines: list[str], indented: bool) -> Play:
    speech, further = re.compile(("  " if indented else "") + SPEECH), "    " if indented else ""
    roles: Play = {}
    speaker = None
    for line in lines:
        match = speech.match(line)
        if not indented and (line.startswith("<") or (match and match[1].upper().startswith("ACT "))):
            speaker = None
        elif match:
            speaker = match[1].upper()
            roles.setdefault(speaker, []).append(match[2])
        elif speaker is not None and line.startswith(further):
            roles[speaker].append(line.removeprefix(further))
    return roles


def encode(text: str) -> np.ndarray:
    """Symbols [characters] uint8; their numbers are places in VOCABULARY."""
    outside = sorted(set(text) - set(VOCABULARY))
    if outside:
        raise UserError(f"shakespeare: characters outside the {len(VOCABULARY)} symbols: {outside[:5]}")
    place = np.zeros(128, dtype=np.uint8)
    place[[ord(symbol) for symbol in VOCABULARY]] = np.arange(len(VOCABULARY))
    return place[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]


def windows(texts: Sequence[np.ndarray], group: np.ndarray | None = None) -> Split:
    """Every window of every role (group [roles]), by its start in the concatenated texts."""
    x, lengths = np.concatenate(texts), np.array([len(text) for text in texts])
    ends, counts = np.cumsum(lengths), lengths - WINDOW
    starts = [np.arange(end - n, end - WINDOW) for n, end in zip(lengths, ends, strict=True)]
    start = np.concatenate(starts).astype(np.int32)
    client = np.repeat(np.arange(len(texts), dtype=np.int16), counts)
    return Split(x, x[start + WINDOW], client, None if group is None else group[client], start, WINDOW)


def _chosen(roles: str) -> list[Role]:
    """The rows of a set; none for `all`."""
    if str(roles) not in ("all", *SETS):
        raise UserError(f"shakespeare: roles = '{roles}' is unknown{nearest(roles, ('all', *SETS))}")
    return [row for row in read_table() if str(roles) in row.sets]


def _cast(chosen: Sequence[Role], rng: np.random.Generator | None = None) -> tuple[list[int], list[bool]]:
    """Number of characters of each role of the stand-in, and whether it is female."""
    if chosen:
        return [row.characters for row in chosen], [row.gender == "female" for row in chosen]
    shape = np.exp([NormalDist(sigma=SPREAD).inv_cdf((i + 0.5) / ALL_ROLES) for i in range(ALL_ROLES)])
    counts = np.ceil(ALL_WINDOWS * shape / shape.sum()).astype(int)
    female = np.zeros(ALL_ROLES, dtype=bool) if rng is None else rng.random(ALL_ROLES) < 10 / 35
    return (counts + WINDOW).tolist(), female.tolist()


def _limit(lengths: Iterable[int], samples: int) -> list[int]:
    """Number of characters to keep of each role for at most `samples` windows."""
    if samples < 0:
        raise UserError(f"shakespeare: samples = {samples}: windows of a role, or 0 for all of them")
    return [min(length, samples + WINDOW) if samples else length for length in lengths]


DATASET = Entry(
    shakespeare, seeded=False, size=shakespeare_size, files="shakespeare", reads=(TABLE,), example={"samples": 40}
)
