"""The claims on the page: the ledger's rows, the artefacts that they speak of, and the counts of verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from fedrepro.report.formats import data_labels, short_number
from fedrepro.report.gather import parse_csv, read

# verdict: (css class, symbol, meaning), in the order in which the page shows them
VERDICTS = {
    "reproduced": ("reproduced", "✓", "our interval agrees with the paper within the stated tolerance"),
    "direction": ("direction", "↗", "the ordering or the shape holds, the value does not"),
    "not reproduced": ("failed", "✗", "our result disagrees with the paper"),
    "contradicted by the source": ("contradicted", "≠", "the paper's own numbers disagree with each other"),
    "not tested": ("untested", "–", "no verdict at this scale or with this data; the reason is given"),
}


def read_claims(results: Path, problems: list[str]) -> list[dict]:
    """The rows of ledger.csv, with texts for the page and values to sort by."""
    rows = read(results / "ledger.csv", results, parse_csv, problems)
    if not rows:
        return []
    claims = []
    for row in rows[1:]:
        cell = dict(zip(rows[0], row, strict=False))
        claim = {
            key: cell.get(key, "") for key in ("claim", "study", "source", "kind", "statement", "verdict", "reason")
        }
        claim |= {key: cell.get(key, "") for key in ("scale", "seeds")}
        css, symbol, _ = VERDICTS.get(claim["verdict"], ("other", "?", ""))
        low, high = short_number(cell.get("ci_low", "")), short_number(cell.get("ci_high", ""))
        claim |= {
            "css": css,
            "symbol": symbol,
            "rank": [*VERDICTS, claim["verdict"]].index(claim["verdict"]),
            "published": short_number(cell.get("published", "")),
            "ours": short_number(cell.get("ours", "")),
            "interval": f"[{low or '?'}, {high or '?'}]" if low or high else "",
            "data": data_labels(re.split(r"[\s,;+/]+", cell.get("data", ""))),
            "artefacts": [],
        }
        claims.append(claim)
    return claims


def link_claims(claims: list[dict], artefacts: list[dict]) -> None:
    """Tie a claim to the artefacts of its study whose place in the paper its own source names."""
    for artefact in artefacts:
        if artefact["added"] or not artefact["source"]:
            continue
        # "Fig. 3" is not named by "Fig. 3(b)", nor "Table 2.1" by "Table 2.10" or "Table 2.1.1".
        place = re.compile(r"(?<!\w)" + re.escape(artefact["source"]) + r"(?!\w|\(|\.\w)")
        for claim in claims:
            if claim["study"] == artefact["study"] and place.search(claim["source"]):
                claim["artefacts"].append({"id": artefact["id"], "kind": artefact["kind"]})
                artefact["claims"].append(claim)


def summary_of(claims: list[dict], studies: list[str]) -> dict:
    """Counts by study and verdict: {verdicts: [(name, css, symbol, meaning)], total: row, rows: [row]}."""
    unknown = sorted({claim["verdict"] for claim in claims} - set(VERDICTS))
    verdicts = [(name, *details) for name, details in VERDICTS.items()]
    verdicts += [(name, "other", "?", "a verdict that this page does not know") for name in unknown]

    def row(study: str, chosen: Iterable[dict]) -> dict:
        counts = Counter(claim["verdict"] for claim in chosen)
        cells = [{"verdict": name, "css": css, "symbol": sign, "n": counts[name]} for name, css, sign, _ in verdicts]
        return {
            "study": study,
            "cells": cells,
            "n": counts.total(),
            "tested": counts.total() - counts["not tested"],
        }

    return {
        "verdicts": verdicts,
        "total": row("", claims),
        "rows": [row(study, [claim for claim in claims if claim["study"] == study]) for study in studies],
        "standin": sum(any(label["css"] == "standin" for label in claim["data"]) for claim in claims),
    }
