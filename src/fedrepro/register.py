"""What a reader must know beside the results: settings that we had to assume, and errata of the papers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

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


def errata(ledger: Path) -> list[dict[str, str]]:
    """The claims that the papers themselves contradict, with the numbers."""
    if not ledger.exists():
        return []
    rows = pd.read_csv(ledger)
    rows = rows[rows["verdict"] == "contradicted by the source"]
    return [
        {"study": r.study, "place": str(r.source), "statement": r.statement, "reason": r.reason}
        for r in rows.itertuples()
    ]
