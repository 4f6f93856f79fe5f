"""A run beside the committed reference: for each claim and headline, whether they agree.

A run *disagrees* where both decided and the verdicts differ beyond the intervals, or where the same settings give
numbers whose intervals do not meet. It is *too small to say* where it did not decide, or where the intervals overlap.
"""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedrepro.report.claims import as_claim, read_headlines, read_rows
from fedrepro.report.formats import as_float, as_text, duration, is_number
from fedrepro.report.gather import as_dict, read

DECIDED = ("reproduced", "direction", "not reproduced", "contradicted by the source")
# relation → (css class, symbol, words)
RELATIONS = {
    "disagrees": ("failed", "✗", "disagrees"),
    "agrees": ("reproduced", "✓", "agrees"),
    "small": ("untested", "…", "too small to say"),
    "further": ("direction", "+", "further than the reference"),
    "alone": ("untested", "–", "no reference"),
}
Claim = dict[str, Any]


def read_reference(reference: Path | None, results: Path, problems: list[str]) -> dict[str, Any] | None:
    """{claims: id → claim, headlines: (study, headline) → headline, seconds: study → time of its training jobs}; None
    without a reference, and where `results` is the reference."""
    if reference is None or not (reference / "headlines.csv").is_file() or reference.resolve() == results.resolve():
        return None
    claims = {row.get("claim", ""): as_claim(row) for row in read_rows(reference / "ledger.csv", reference, problems)}
    headlines = read_headlines(reference, list(claims.values()), problems)
    seconds: Counter[str] = Counter()
    for path in sorted(reference.glob("runs/*/**/*.json")):
        run = as_dict(read(path, reference, json.loads, problems))
        seconds[as_text(run.get("experiment")).partition("/")[0]] += as_float(run.get("seconds"))  # type: ignore[assignment]
    return {
        "claims": claims,
        "headlines": {(row["study"], row["headline"]): row for row in headlines},
        "seconds": {study: duration(total) for study, total in seconds.items()},
    }


def relation_of(now: Claim, was: Claim | None, of_decided: Callable[[Claim, Claim], str]) -> str:
    """A name of RELATIONS, of two claims or of two headlines; `of_decided` is for two that both decided."""
    if was is None:
        return "alone"
    if now["verdict"] not in DECIDED:
        return "small"
    return of_decided(now, was) if was["verdict"] in DECIDED else "further"


def decided_claims(now: Claim, was: Claim) -> str:
    same_settings = all(now[key] == was[key] for key in ("scale", "kinds_of_data", "evidence"))
    apart = _apart(now["ends"], was["ends"])
    if now["verdict"] == was["verdict"]:
        return "disagrees" if apart and same_settings else "agrees"
    return "small" if apart is False else "disagrees"


def _apart(ours: tuple[str, str], theirs: tuple[str, str]) -> bool | None:
    """Whether two intervals do not meet; None where one of them has no two ends."""
    ends = [float(end) if is_number(end) else math.nan for end in (*ours, *theirs)]
    if any(map(math.isnan, ends)):
        return None
    return ends[0] > ends[3] or ends[2] > ends[1]


def decided_headlines(now: dict[str, Any], was: dict[str, Any]) -> str:
    """The claims of `now` have their relations already."""
    if now["verdict"] == was["verdict"]:
        return "agrees"
    return "disagrees" if any(claim["relation"] == "disagrees" for claim in now["claims"]) else "small"


def compare(claims: list[Claim], headlines: list[dict[str, Any]], reference: dict[str, Any] | None) -> list[Claim]:
    """Give each claim and headline its `relation` and the reference's (`was`); returns the claims that disagree."""
    for claim in claims:
        claim["was"] = reference["claims"].get(claim["claim"]) if reference else None
        claim["relation"] = relation_of(claim, claim["was"], decided_claims)
    for headline in headlines:
        key = (headline["study"], headline["headline"])
        headline["was"] = reference["headlines"].get(key) if reference else None
        headline["relation"] = relation_of(headline, headline["was"], decided_headlines)
    return [claim for claim in claims if claim["relation"] == "disagrees"]
