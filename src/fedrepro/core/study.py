"""Studies, found by their folders, config/studies/<study>/ or a folder outside (`fedrepro.core.outside`): study.yaml
(title, authors, venue, link, headlines) and optionally experiments/, claims.yaml, published.csv, artefacts.yaml and
errata.yaml. The code has no list of studies."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrepro.core import outside
from fedrepro.core.schemas import validate
from fedrepro.errors import UserError, nearest
from fedrepro.files import is_regular, read_yaml

_LAST = 10**6


def check_name(path: Path, name: str, pattern: str = outside.NAME) -> None:
    """Names become parts of paths: letters, digits and underscores only."""
    if not re.fullmatch(pattern, name):
        raise UserError(f"{ascii(str(path))[1:-1]}: {ascii(name)[:80]} is no name: letters, digits and _ only")


@dataclass(frozen=True)
class Headline:
    """What the abstract or the conclusion wants believed, and how it follows from claims."""

    id: str
    quote: str
    place: str
    says: str
    claims: tuple[str, ...]  # ids or patterns of claims
    rule: str  # all, most, any or decisive
    decisive: str | None = None  # the claim that decides

    @classmethod
    def of(cls, id: str, raw: Mapping[str, Any]) -> "Headline":
        texts, rule = {key: raw[key] for key in ("quote", "place", "says")}, raw["rule"]
        decisive = None if isinstance(rule, str) else rule["decisive"]
        return cls(id, **texts, claims=tuple(raw["claims"]), rule="decisive" if decisive else rule, decisive=decisive)


@dataclass(frozen=True)
class Study:
    """One paper, or one chapter, and the folder that describes it."""

    name: str
    folder: Path
    title: str
    authors: tuple[str, ...]
    venue: str
    link: str
    order: int = _LAST
    caveat: str = ""  # what a reader of the verdict must know first
    headlines: Mapping[str, Headline] = field(default_factory=dict)
    main: str | None = None  # the headline that is the paper's main message
    key_artefact: str | None = None  # the figure or table that shows it

    @property
    def paper(self) -> str:
        return f"{self.title} ({self.venue})"

    def file(self, name: str) -> Path | None:
        """A file of the study's folder; None if it does not exist."""
        path = self.folder / name
        return path if is_regular(path) else None

    def files(self, name: str) -> list[str]:
        """`file` as the input of a rule: one path or none."""
        return [str(path)] if (path := self.file(name)) else []


def study_folders(config: Path) -> dict[str, Path]:
    """Name → folder of the studies of a config folder, sorted, and of those outside."""
    return {path.name: path for path in sorted((config / "studies").glob("*/"))} | dict(outside.known())


def load_studies(config: Path) -> dict[str, Study]:
    """Name → study, in the order of display: those of a config folder and those outside."""
    found = []
    described = {name: folder / "study.yaml" for name, folder in study_folders(config).items()}
    for name, path in ((name, path) for name, path in described.items() if is_regular(path)):
        check_name(path, name)
        raw = read_yaml(path)
        validate(raw, "study", path)
        headlines = {id: Headline.of(id, about) for id, about in raw.get("headlines", {}).items()}
        if headlines and raw["main"] not in headlines:
            raise UserError(f"{path}: main: '{raw['main']}' is no headline{nearest(raw['main'], headlines)}")
        raw |= {"authors": tuple(raw["authors"]), "headlines": headlines}
        found.append(Study(name, path.parent, **raw))
    return {study.name: study for study in sorted(found, key=lambda study: (study.order, study.name))}


def study_of(config: Path, name: str) -> Study:
    """One study; UserError with the nearest name if unknown."""
    known = load_studies(config)
    if name not in known:
        raise UserError(f"study '{name}' is unknown{nearest(name, known)}")
    return known[name]
