"""Headlines: what a paper wants believed, rolled up from the verdicts of its own claims."""

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from fedrepro.core.study import Headline
from fedrepro.evidence.verdicts import (
    CONTRADICTED,
    DIRECTION,
    NOT_REPRODUCED,
    NOT_TESTED,
    REPRODUCED,
    UNDECIDED,
)

COLUMNS = [
    *("headline", "study", "main", "quote", "place", "says", "rule", "claims", "n"),
    *("reproduced", "direction", "not_reproduced", "undecided", "not_tested", "verdict", "reason"),
]
COUNTED = (REPRODUCED, DIRECTION, NOT_REPRODUCED, UNDECIDED, NOT_TESTED)


def claims_of(headline: Headline, claims: Collection[str]) -> list[str]:
    """The ids that the headline's patterns name, in their order."""
    named = (*headline.claims, *filter(None, [headline.decisive]))
    return [claim for claim in claims if any(fnmatchcase(claim, pattern) for pattern in named)]


def roll_up(rule: str, verdicts: Sequence[str]) -> str:
    """The verdict of a headline over those of its claims.

    all: one not reproduced → not reproduced; all reproduced → reproduced; all reproduced or direction → direction.
    most: more than half reproduced → reproduced; more than half reproduced or direction → direction; at least half not
    reproduced → not reproduced. any: one reproduced → reproduced; one direction → direction; all not reproduced → not
    reproduced. In each: none tested → not tested; else undecided. Contradicted by the source counts as not reproduced.
    """
    n, of = len(verdicts), {verdict: verdicts.count(verdict) for verdict in COUNTED}
    good, wrong = of[REPRODUCED], of[NOT_REPRODUCED] + verdicts.count(CONTRADICTED)
    weaker = good + of[DIRECTION]
    if of[NOT_TESTED] == n:
        return NOT_TESTED
    match rule:
        case "all":
            order = [(wrong > 0, NOT_REPRODUCED), (good == n, REPRODUCED), (weaker == n, DIRECTION)]
        case "most":
            order = [(2 * good > n, REPRODUCED), (2 * weaker > n, DIRECTION), (2 * wrong >= n, NOT_REPRODUCED)]
        case _:
            order = [(good > 0, REPRODUCED), (weaker > 0, DIRECTION), (wrong == n, NOT_REPRODUCED)]
    return next((verdict for holds, verdict in order if holds), UNDECIDED)


def headline_row(headline: Headline, study: str, main: bool, verdicts: Mapping[str, str]) -> dict[str, Any]:
    """verdicts: claim → its verdict, of the headline's claims."""
    listed = list(verdicts.values())
    decisive = verdicts.get(headline.decisive or "")
    verdict = decisive if decisive is not None else roll_up(headline.rule, listed)
    counts = {v: listed.count(v) + (listed.count(CONTRADICTED) if v == NOT_REPRODUCED else 0) for v in COUNTED}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    reason = f"of {len(listed)} claims: {told}" if len(listed) != 1 else f"one claim: {listed[0]}"
    if headline.decisive:
        reason = f"{headline.decisive} decides: {decisive}; {reason}"
    about = {key: getattr(headline, key) for key in ("quote", "place", "says")}
    rule = f"decisive: {headline.decisive}" if headline.decisive else headline.rule
    row = {"headline": headline.id, "study": study, "main": main, **about, "rule": rule}
    row |= {"claims": " ".join(verdicts), "n": len(listed)}
    row |= {name.replace(" ", "_"): count for name, count in counts.items()}
    return row | {"verdict": verdict, "reason": reason}
