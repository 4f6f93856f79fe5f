"""Settings that we had to assume, and errata of the papers."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from fedrepro.core.expansion import Located, expand
from fedrepro.core.schemas import validate
from fedrepro.files import read_yaml

_LINE = re.compile(r"^\s*(?P<key>[\w ]+):\s*(?P<value>[^#]*?)\s*(?:#(?P<comment>.*))?$")


def assumed_settings(experiments: Iterable[Path]) -> list[dict[str, str]]:
    """Every `# assumed: …` of the files config/studies/<study>/experiments/*.yaml: the study, the key with its parents, our
    value, the reason, the experiments that have it, and the artefacts of the study that vary it (`varies` in
    artefacts.yaml of the study names the last parts of a key): where to look for what it does to the results.
    Where a value is inherited or filled in, the comment stands in the file that it comes from."""
    files = set(experiments)
    having: dict[tuple[str, str, str, str], list[str]] = {}
    shown: dict[str, dict[str, list[str]]] = {}
    for folder in sorted({path.parent for path in files}):
        study, reasons = folder.parent.name, _Reasons()
        shown[study] = _varied(folder.parent / "artefacts.yaml")
        for name, experiment in expand(sorted(folder.glob("*.yaml"))).items():
            for key, value, reason in _assumed(experiment.tree, reasons) if experiment.path in files else ():
                having.setdefault((study, key, value, reason), []).append(name)
    return [
        {
            "study": study,
            "key": key,
            "value": value,
            "reason": reason,
            "experiments": ", ".join(names),
            "shown": ", ".join(f"{study}/{a}" for a, parts in shown[study].items() if _ends_with(key, parts)),
        }
        for (study, key, value, reason), names in having.items()
    ]


class _Reasons(dict[Path, dict[tuple[int, str], str]]):
    """File → (line, key that begins it) → the assumption that the line's comment states."""

    def __missing__(self, file: Path) -> dict[tuple[int, str], str]:
        found = self[file] = {}
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = _LINE.match(line) if "assumed:" in line else None
            if match:
                _, mark, reason = (match["comment"] or "").partition("assumed:")
                if mark:
                    found[number, match["key"]] = reason.strip()
        return found


def _assumed(node: Located, reasons: _Reasons, key: str = "") -> Iterator[tuple[str, str, str]]:
    """(key with its parents, value, reason) of every assumption of an experiment."""
    for place in node.places:
        if (reason := reasons[place.file].get((place.line, place.key))) is not None:
            yield key, node.written(), reason
            break
    for name, child in node.value.items() if node.is_block else ():
        yield from _assumed(child, reasons, f"{key}.{name}".lstrip("."))


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
