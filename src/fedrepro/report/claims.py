"""The claims on the page: the ledger's rows, their artefacts, and the counts of verdicts."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.report.formats import data_labels, short_number
from fedrepro.report.gather import parse_csv, read

# verdict → (css class, symbol, meaning), in the order of the page
VERDICTS = {
    "reproduced": ("reproduced", "✓", "our interval agrees with the paper within the stated tolerance"),
    "direction": ("direction", "↗", "the ordering or the shape holds, the value does not"),
    "not reproduced": ("failed", "✗", "our result disagrees with the paper"),
    "contradicted by the source": ("contradicted", "≠", "the paper's own numbers disagree with each other"),
    "not tested": ("untested", "–", "no verdict at this scale or with this data; the reason is given"),
}

PLAIN = ("claim", "study", "source", "kind", "statement", "verdict", "reason", "scale", "seeds")


def read_claims(results: Path, problems: list[str]) -> list[dict[str, Any]]:
    """The rows of ledger.csv, with texts for the page and values to sort by."""
    rows = read(results / "ledger.csv", results, parse_csv, problems) or [[]]
    claims = []
    for row in rows[1:]:
        cell = dict(zip(rows[0], row, strict=False))
        claim: dict[str, Any] = {key: cell.get(key, "") for key in PLAIN}
        claim["css"], claim["symbol"], _ = VERDICTS.get(claim["verdict"], ("other", "?", ""))
        numbers = ("published", "ours", "ci_low", "ci_high")
        claim["published"], claim["ours"], low, high = (short_number(cell.get(key, "")) for key in numbers)
        claim["rank"] = [*VERDICTS, claim["verdict"]].index(claim["verdict"])
        claim["interval"] = f"[{low or '?'}, {high or '?'}]" if low or high else ""
        claim["data"] = data_labels(re.split(r"[\s,;+/]+", cell.get("data", "")))
        claims.append({**claim, "artefacts": []})
    return claims


def link_claims(claims: list[dict[str, Any]], artefacts: list[dict[str, Any]]) -> None:
    """Link each claim to the artefacts of its study that its source names."""
    for artefact in (a for a in artefacts if a["source"] and not a["added"]):
        # "Fig. 3(b)" does not name "Fig. 3", nor do "Table 2.10" and "Table 2.1.1" name "Table 2.1".
        place = re.compile(r"(?<!\w)" + re.escape(artefact["source"]) + r"(?!\w|\(|\.\w)")
        for claim in claims:
            if claim["study"] == artefact["study"] and place.search(claim["source"]):
                claim["artefacts"].append({"id": artefact["id"], "kind": artefact["kind"]})
                artefact["claims"].append(claim)


def summary_of(claims: list[dict[str, Any]], studies: list[str]) -> dict[str, Any]:
    """Counts by study and verdict: {verdicts: [(name, css, symbol, meaning)], total: row, rows: [row]}."""
    unknown = sorted({claim["verdict"] for claim in claims} - set(VERDICTS))
    verdicts = [(name, *details) for name, details in VERDICTS.items()]
    verdicts += [(name, "other", "?", "a verdict that this page does not know") for name in unknown]

    def row(study: str, chosen: Iterable[dict[str, Any]]) -> dict[str, Any]:
        counts = Counter(claim["verdict"] for claim in chosen)
        cells = [{"verdict": name, "css": css, "symbol": sign, "n": counts[name]} for name, css, sign, _ in verdicts]
        return {"study": study, "cells": cells, "n": (n := counts.total()), "tested": n - counts["not tested"]}

    return {
        "verdicts": verdicts,
        "total": row("", claims),
        "rows": [row(study, [claim for claim in claims if claim["study"] == study]) for study in studies],
        "standin": sum(any(label["css"] == "standin" for label in claim["data"]) for claim in claims),
    }
