"""Settings that we had to assume, and errata of the papers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from fedrepro.core.config import read_yaml, validate

_LINE = re.compile(r"^(?P<indent>\s*)(?P<key>[\w ]+):\s*(?P<value>[^#]*?)\s*(?:#(?P<comment>.*))?$")


def assumed_settings(experiments: Iterable[Path]) -> list[dict[str, str]]:
    """Every `# assumed: …` of the files config/experiments/<study>/*.yaml: the study, the key with its parents, our
    value, the reason, the experiments that have it, and the artefacts of the study that vary it (`varies` in
    config/artefacts/<study>.yaml names the last parts of a key): where to look for what it does to the results."""
    files: dict[tuple[str, str, str, str], list[str]] = {}
    shown: dict[str, dict[str, list[str]]] = {}
    for path in sorted(experiments):
        study = path.parent.name
        if study not in shown:
            shown[study] = _varied(path.parents[2] / "artefacts" / f"{study}.yaml")
        for key, value, reason in _assumed(path.read_text()):
            files.setdefault((study, key, value, reason), []).append(path.stem)
    return [
        {
            "study": study,
            "key": key,
            "value": value,
            "reason": reason,
            "experiments": ", ".join(names),
            "shown": ", ".join(f"{study}/{a}" for a, parts in shown[study].items() if _ends_with(key, parts)),
        }
        for (study, key, value, reason), names in files.items()
    ]


def _assumed(text: str) -> Iterator[tuple[str, str, str]]:
    """(key with its parents, value, reason) of every assumption of a file."""
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            depth = len(match["indent"])
            parents = [p for p in parents if p[0] < depth] + [(depth, match["key"])]
            _, mark, reason = (match["comment"] or "").partition("assumed:")
            if mark:
                yield ".".join(name for _, name in parents), match["value"], reason.strip()


def _varied(declared: Path) -> dict[str, list[str]]:
    """Artefact → the settings that it varies."""
    artefacts = read_yaml(declared) if declared.is_file() else {}
    return {name: spec["varies"] for name, spec in artefacts.items() if "varies" in spec}


def _ends_with(key: str, parts: Iterable[str]) -> bool:
    return any(f".{key}".endswith(f".{part}") for part in parts)


def errata(ledger: Path, studies: Iterable[Path]) -> list[dict[str, str]]:
    """Errors in the papers of the ledger's studies, as study, place, statement and reason: the claims that the papers
    themselves contradict, then the errata.yaml of each study. studies: folders config/studies/<study>."""
    if not ledger.exists():
        return []
    folders, rows = {folder.name: folder for folder in studies}, pd.read_csv(ledger)
    judged = rows[rows["verdict"] == "contradicted by the source"].astype({"source": str})
    judged = judged.rename(columns={"source": "place"})[["study", "place", "statement", "reason"]]
    found: list[dict[str, str]] = []
    for study in dict.fromkeys(rows["study"]):
        found += judged[judged["study"] == study].to_dict("records")
        if study in folders and (listed := folders[study] / "errata.yaml").is_file():
            validate(entries := read_yaml(listed), "errata", listed)
            found += [{"study": study, **entry} for entry in entries]
    return found
