"""What a reader must know beside the results: settings that we had to assume, and errata of the papers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from fedrepro.config import read_yaml, validate

_LINE = re.compile(r"^(?P<indent>\s*)(?P<key>[\w ]+):\s*(?P<value>[^#]*?)\s*(?:#(?P<comment>.*))?$")


def assumed_settings(experiments: Iterable[Path]) -> list[dict[str, str]]:
    """Every `# assumed: …` of the experiments' files: experiment, key (with its parents), our value, the reason."""
    found = []
    for path in sorted(experiments):
        parents: list[tuple[int, str]] = []
        for line in path.read_text().splitlines():
            match = _LINE.match(line)
            if not match:
                continue
            depth = len(match["indent"])
            parents = [p for p in parents if p[0] < depth] + [(depth, match["key"])]
            _, mark, reason = (match["comment"] or "").partition("assumed:")
            if mark:
                key = ".".join(name for _, name in parents)
                file = f"{path.parent.name}/{path.stem}"
                found.append({"file": file, "key": key, "value": match["value"], "reason": reason.strip()})
    return found


def errata(ledger: Path, listed: Path | None) -> list[dict[str, str]]:
    """What is wrong in the papers of the ledger's studies: the claims that the papers themselves contradict, with the
    numbers, then what the file `listed` (config/errata.yaml) has beside them: study, place, statement, reason."""
    if not ledger.exists():
        return []
    rows = pd.read_csv(ledger)
    judged = rows[rows["verdict"] == "contradicted by the source"]
    more = {}
    if listed is not None and listed.exists():
        validate(more := read_yaml(listed), "errata", listed)
    found = []
    for study in dict.fromkeys(rows["study"]):
        mine = judged.loc[judged["study"] == study, ["source", "statement", "reason"]]
        entries = mine.astype({"source": str}).rename(columns={"source": "place"}).to_dict("records")
        found += [{"study": study, **entry} for entry in [*entries, *more.get(study, [])]]
    return found
