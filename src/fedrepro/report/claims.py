"""Claims, readings and headlines on the page, and their counts. Claims of the paper, arithmetic on its printed numbers
and claims of ours are counted apart."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedrepro.evidence import explanations
from fedrepro.report.formats import as_text, data_labels, interval_text, p_texts, short_number
from fedrepro.report.gather import as_dict, parse_csv, read

# verdict → (css class, symbol, meaning), in the order of the page
VERDICTS = {
    "reproduced": ("reproduced", "✓", "our interval agrees with the paper"),
    "direction": ("direction", "↗", "the ordering or the shape holds, the value or the size does not"),
    "not reproduced": ("failed", "✗", "our result disagrees with the paper, or shows no difference that matters"),
    "undecided": ("undecided", "?", "run at the settings that matter, but the interval does not decide"),
    "contradicted by the source": ("contradicted", "≠", "the paper's own numbers disagree with each other"),
    "not tested": ("untested", "–", "a setting or the data that the claim needs is missing; the reason names it"),
}
UNKNOWN = ("other", "!", "a verdict that this page does not know")
# origin → name in totals
ORIGINS = {
    "paper": "the paper's own claims",
    "printed": "arithmetic on printed numbers",
    "added": "added by us",
}

PLAIN = (
    *("claim", "study", "origin", "source", "kind", "family", "statement", "paper_says", "our_test"),
    *("verdict", "reason", "hint", "evidence", "scale", "seeds", "reading", "next"),
)
HEADLINE = ("headline", "study", "quote", "place", "says", "rule", "verdict", "reason")
# the mean in `name 0.31 ± 0.1, other 0.2 ± 0.1` or in `0.31`; the printed number at the start of `160 ± 2 (30 runs)`
MEAN = re.compile(r"(?:^|(?<= ))(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?= ±|$)")
PRINTED = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?= ±| \(|$)")
NAME = re.compile(r"\w+")
COUNTS = ("reproduced", "direction", "not_reproduced", "undecided", "not_tested")  # columns of headlines.csv


def read_claims(results: Path, problems: list[str]) -> list[dict[str, Any]]:
    """The rows of ledger.csv, with texts for the page, values to sort by, and the other readings of each claim."""
    readings = defaultdict(list)
    for row in read_rows(results / "readings.csv", results, problems):
        readings[row.get("claim", "")].append(as_claim(row))
    claims = [as_claim(row) for row in read_rows(results / "ledger.csv", results, problems)]
    whys = read_explanations(results, problems)
    more = (
        {"readings": readings[id], "artefacts": [], "explained": whys.get(id)} for id in (c["claim"] for c in claims)
    )
    return [{**claim, **rest} for claim, rest in zip(claims, more, strict=True)]


def read_explanations(results: Path, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Claim → its explanation (evidence/explanations.py) with the rows of its table and the place of its figure."""
    found = {}
    for path in sorted(results.glob(f"{explanations.FOLDER}/*/*.json")):
        try:
            record = as_dict(read(path, results, json.loads, problems))
            about = {key: as_text(record[key]) for key in ("answer", "reading", "said")}
            rows, figure = explanations.table_rows(record), path.with_suffix(".svg")
        except (KeyError, TypeError, AttributeError, ValueError):
            problems.append(f"{path.relative_to(results).as_posix()} is no explanation")
            continue
        link = f"../{figure.relative_to(results).as_posix()}" if figure.is_file() else ""
        found[f"{path.parent.name}/{path.stem}"] = {**about, "rows": rows, "figure": link}
    return found


def read_rows(path: Path, root: Path, problems: list[str]) -> list[dict[str, str]]:
    """The rows of a csv file by column; none where it is missing or broken."""
    head, *rows = read(path, root, parse_csv, problems) or [[]]
    return [dict(zip(head, row, strict=False)) for row in rows]


def as_claim(row: dict[str, str]) -> dict[str, Any]:
    """A row of the ledger, or of the readings, as the page shows it."""
    claim: dict[str, Any] = {key: row.get(key, "") for key in PLAIN} | marked(row.get("verdict", ""))
    claim["ours"] = short_number(row.get("ours", ""))
    claim["interval"] = interval_text(row.get("ci_low", ""), row.get("ci_high", ""))
    claim["p"] = p_texts(row)
    claim["order"] = {key: "" if row.get(key) == "nan" else row.get(key, "") for key in ("ci_low", "p")}
    data = set(re.split(r"[\s,;+/]+", row.get("data", ""))) - {"published"}  # then the evidence says so
    claim["data"] = data_labels(data)
    claim["kinds_of_data"] = sorted(data - {""})
    claim["ends"] = (row.get("ci_low", ""), row.get("ci_high", ""))
    claim["factor"] = factor_of(row)
    claim["grade"] = re.split("[:;]", claim["evidence"])[0]  # without the settings that differ
    claim["paper_says"] = claim["paper_says"] or claim["statement"]
    return claim


def marked(verdict: str) -> dict[str, Any]:
    """A verdict with its css class, symbol and place in the order."""
    css, symbol, _ = VERDICTS.get(verdict, UNKNOWN)
    return {"verdict": verdict, "css": css, "symbol": symbol, "rank": [*VERDICTS, verdict].index(verdict)}


def factor_of(row: Mapping[str, str]) -> float:
    """How many times one number is the other: ours and the printed one, or the two that an ordering compares; 1 where
    there are no two positive numbers."""
    ours = [float(text) for text in MEAN.findall(row.get("ours", ""))]
    printed = PRINTED.match(row.get("paper_says", ""))
    pair = [*ours[:1], float(printed[0])] if row.get("kind") == "value" and printed else ours[:2]
    return max(pair) / min(pair) if len(pair) == 2 and min(pair) > 0 else 1.0


def read_headlines(results: Path, claims: list[dict[str, Any]], problems: list[str]) -> list[dict[str, Any]]:
    """The rows of headlines.csv with the claims that each rests on; of a study, its main headline first."""
    by_id = {claim["claim"]: claim for claim in claims}
    headlines = []
    for row in read_rows(results / "headlines.csv", results, problems):
        names = [name if "/" in name else f"{row.get('study')}/{name}" for name in row.get("claims", "").split()]
        counts = ((key.replace("_", " "), row.get(key, "")) for key in COUNTS)
        headline: dict[str, Any] = {key: row.get(key, "") for key in HEADLINE} | marked(row.get("verdict", ""))
        headline["main"] = row.get("main", "").lower() == "true"
        headline["counts"] = ", ".join(f"{n} {verdict}" for verdict, n in counts if n not in ("", "0"))
        headlines.append({**headline, "claims": [by_id[name] for name in names if name in by_id]})
    return sorted(headlines, key=lambda headline: not headline["main"])


def link_claims(claims: list[dict[str, Any]], artefacts: list[dict[str, Any]]) -> None:
    """Link each claim to the artefacts of its study that its source names."""
    for artefact in (a for a in artefacts if a["source"] and not a["added"]):
        # "Fig. 3(b)" does not name "Fig. 3", nor do "Table 2.10" and "Table 2.1.1" name "Table 2.1".
        place = re.compile(r"(?<!\w)" + re.escape(artefact["source"]) + r"(?!\w|\(|\.\w)")
        for claim in claims:
            if claim["study"] == artefact["study"] and place.search(claim["source"]):
                claim["artefacts"].append({"id": artefact["id"], "kind": artefact["kind"]})
                artefact["claims"].append(claim)


def explain_measures(claims: list[dict[str, Any]], meanings: Mapping[str, Mapping[str, str]]) -> None:
    """Give each claim the measures that its test names, with their meanings: [(name, meaning)]. meanings: by study."""
    for claim in claims:
        known = meanings.get(claim["study"], {})
        named = dict.fromkeys(NAME.findall(claim["our_test"]))
        claim["measures"] = [(name, known[name]) for name in named if name in known]


def summary_of(claims: list[dict[str, Any]], headlines: list[dict[str, Any]], studies: list[str]) -> dict[str, Any]:
    """{verdicts: [(name, css, symbol, meaning)], rows: [row per study], total: row, headlines: counts, standin}.
    A row's cells count the paper's own claims; `printed` and `added` are counts of their own."""
    unknown = sorted({item["verdict"] for item in [*claims, *headlines]} - set(VERDICTS))
    verdicts = [(name, *details) for name, details in VERDICTS.items()] + [(name, *UNKNOWN) for name in unknown]

    def counted(items: Iterable[dict[str, Any]]) -> dict[str, Any]:
        counts = Counter(item["verdict"] for item in items)
        cells = [{"verdict": name, "css": css, "symbol": sign, "n": counts[name]} for name, css, sign, _ in verdicts]
        return {"cells": cells, "n": (n := counts.total()), "tested": n - counts["not tested"]}

    def row(study: str, chosen: list[dict[str, Any]]) -> dict[str, Any]:
        others = {origin: [c for c in chosen if c["origin"] == origin] for origin in list(ORIGINS)[1:]}
        own = [claim for claim in chosen if claim["origin"] not in others]
        return {"study": study, **counted(own), **{origin: counted(found) for origin, found in others.items()}}

    return {
        "verdicts": verdicts,
        "total": row("", claims),
        "rows": [row(study, [claim for claim in claims if claim["study"] == study]) for study in studies],
        "headlines": counted(headlines),
        "standin": sum(any(label["css"] == "standin" for label in claim["data"]) for claim in claims),
    }
