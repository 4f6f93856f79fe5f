"""One scorecard per study: main message and verdict, why, strength of the evidence, largest deviations, errata that
matter, and what would change the verdict at which cost."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from fedrepro.evidence.power import seconds_in, told
from fedrepro.report.agreement import DECIDED
from fedrepro.report.claims import marked

Claim = dict[str, Any]
Headline = dict[str, Any]
DOTS = 3
SEEDS = (3, 5, 10)  # from how many seeds on there are one, two and three dots
FEW = 4  # entries of a list on a scorecard; the other pages have all of them
SERIOUS = ("breaks", "misleads")
#: how the reason of an ordering ends → the same for a reader who has not seen its interval
PLAINLY = {
    "above 0": "so it is here",
    "reversed": "it is the other way round",
    "lies across 0": "the interval includes 0",
    "no difference that matters, shown": "there is no difference that matters",
}


def scorecards(
    studies: Sequence[str],
    papers: dict[str, dict[str, Any]],
    headlines: Sequence[Headline],
    claims: Sequence[Claim],
    artefacts: Sequence[dict[str, Any]],
    errata: Sequence[dict[str, str]],
    reference: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """In the order of `studies`; a study with a claim or headline that disagrees with the reference first."""
    cards = []
    for study in studies:
        own = [headline for headline in headlines if headline["study"] == study]
        mine = [claim for claim in claims if claim["study"] == study]
        paper = papers.get(study, {})
        shown = [artefact for artefact in artefacts if artefact["study"] == study]
        main = next((headline for headline in own if headline["main"]), None)
        wrong = [erratum for erratum in errata if erratum["study"] == study and erratum["severity"] in SERIOUS]
        cards.append(
            {
                "study": study,
                "paper": paper,
                "title": paper.get("title") or study,
                "headlines": own,
                "main": main and {**main, **decisive_side(main)},
                "key": next((a for a in shown if a["id"] == f"{study}/{paper.get('key_artefact')}"), None),
                "n_artefacts": len(shown),
                "claims": mine,
                "deviations": deviations(mine, own)[:FEW],
                "n_deviations": len(deviations(mine, own)),
                "errata": sorted(wrong, key=lambda erratum: SERIOUS.index(erratum["severity"]))[:FEW],
                "n_errata": len(wrong),
                "open": open_headlines(own),
                "flips": flips([claim for headline in own for claim in headline["claims"]]),
                "further": further(study, paper, own, mine, reference),
                "disagrees": any(item["relation"] == "disagrees" for item in [*own, *mine]),
            }
        )
    return sorted(cards, key=lambda card: not card["disagrees"])


def decisive_side(headline: Headline) -> dict[str, Any]:
    """The verdict that the first screen shows, with its evidence: the reference's where there is one, unless the run
    goes further."""
    was = headline["was"]
    from_reference = was is not None and headline["relation"] != "further"
    side = was if from_reference else headline
    return {
        "shown": marked(side["verdict"]),
        "from_reference": from_reference,
        "why": why(side),
        "strength": strength(side["claims"]),
        "evidence": evidence_of(side["claims"]),
    }


def why(headline: Headline) -> str:
    """One line: the counts, and the claim that speaks most clearly for the verdict."""
    claims = headline["claims"]
    if not claims:
        return str(headline["reason"])
    pool = [claim for claim in claims if claim["verdict"] == headline["verdict"]] or claims
    clearest = max(pool, key=lambda claim: claim["factor"])
    told_by = f"{clearest['statement'].rstrip('.')}: {conclusion(clearest)}."
    if len(claims) == 1:
        return told_by
    counts = Counter(claim["verdict"] for claim in claims).most_common()
    return f"{', '.join(f'{n} of {len(claims)} claims {verdict}' for verdict, n in counts[:1])}. {told_by}"


def conclusion(claim: Claim) -> str:
    """The end of a claim's reason: what follows from the numbers, or what was missing."""
    reason = claim["reason"].partition(";")[0].rstrip(".")
    if claim["verdict"] != "not tested":
        measured, _, end = reason.rpartition(": ")
        return f"{PLAINLY[end]} ({measured})" if end in PLAINLY and measured else str(end)
    first, *others = reason.split(", ")
    missing = f"{first} and {_many(len(others), 'other setting')}" if others else first
    return f"{missing}; the smaller run {claim['hint'].partition(':')[0]}" if claim["hint"] else missing


def strength(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """[{name, dots, of, words}] for settings, seeds and data."""
    tested = [claim for claim in claims if claim["seeds"] not in ("", "0") or claim["evidence"] == "printed numbers"]
    n = len(claims)
    published = sum(claim["evidence"].startswith(("published settings", "printed numbers")) for claim in tested)
    seeds = [int(claim["seeds"]) for claim in tested if claim["seeds"].isdecimal() and claim["seeds"] != "0"]
    middle = int(median(seeds)) if seeds else 0
    genuine = sum("standin" not in claim["kinds_of_data"] for claim in tested)
    return [
        _dots("settings", _share(published, n), f"the published settings for {published} of {_many(n, 'claim')}"),
        _dots("seeds", sum(middle >= limit for limit in SEEDS), f"{_many(middle, 'seed')} per claim (median)"),
        _dots("data", _share(genuine, n), f"data as in the paper, no stand-in, for {genuine} of {_many(n, 'claim')}"),
    ]


def _dots(name: str, dots: int, words: str) -> dict[str, Any]:
    return {"name": name, "dots": dots, "of": DOTS, "words": words}


def _share(part: int, whole: int) -> int:
    """All: three dots; at least half: two; any: one."""
    return 0 if not part else DOTS if part == whole else 2 if 2 * part >= whole else 1


def _many(n: int, word: str) -> str:
    return f"{n} {word}{'s' if n != 1 else ''}"


def evidence_of(claims: Sequence[Claim]) -> str:
    """`paper scale, 10 to 30 seeds, real data`."""
    scales = sorted({claim["scale"] for claim in claims} - {""})
    seeds = sorted({int(claim["seeds"]) for claim in claims if claim["seeds"].isdecimal()} - {0})
    data = dict.fromkeys(label["text"] for claim in claims for label in claim["data"])
    parts = [f"{' and '.join(scales)} scale"] if scales else []
    if seeds:
        parts.append(f"{_many(seeds[0], 'seed')}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds")
    return ", ".join([*parts, *data])


def deviations(claims: Iterable[Claim], headlines: Iterable[Headline]) -> list[Claim]:
    """The paper's own claims that our numbers contradict: those that a headline rests on first, and then by size."""
    resting = {claim["claim"] for headline in headlines for claim in headline["claims"]}
    wrong = [c for c in claims if c["verdict"] in ("not reproduced", "direction") and c["origin"] == "paper"]
    order = {"not reproduced": 0, "direction": 1}
    return sorted(wrong, key=lambda c: (c["claim"] not in resting, order[c["verdict"]], -c["factor"]))


def open_headlines(headlines: Iterable[Headline]) -> list[dict[str, Any]]:
    """Headlines that are not decided, each with the claims that wait for runs and the time that these take."""
    found = []
    for headline in headlines:
        waiting = [c for c in headline["claims"] if c["verdict"] in ("undecided", "not tested") and c["next"]]
        if headline["verdict"] not in DECIDED and waiting:
            seconds = [seconds_in(claim["next"]) for claim in waiting]
            known = [value for value in seconds if math.isfinite(value)]
            cost = told(sum(known)) if known else ""
            found.append(
                {"headline": headline, "claims": waiting, "cost": cost, "first": _shortened(waiting[0]["next"])}
            )
    return found


def _shortened(step: str) -> str:
    """A next step with the first of the settings that it changes, and its time."""
    first, *others = step.split(", ")
    time = others.pop() if others and others[-1].startswith("about ") else ""
    more = f"and {_many(len(others), 'other setting')}" if others else ""
    return ", ".join(filter(None, [" ".join(filter(None, [first, more])), time]))


def flips(claims: Iterable[Claim]) -> list[tuple[str, int]]:
    """(`reading → verdict`, number of claims) of the readings under which a claim's verdict would be another."""
    changed = {
        claim["claim"]: claim["reading"].removeprefix("flips:").split(";")
        for claim in claims
        if claim["reading"].startswith("flips:")
    }
    return Counter(part.strip() for parts in changed.values() for part in parts).most_common(FEW)


def further(
    study: str,
    paper: dict[str, Any],
    headlines: Sequence[Headline],
    claims: Sequence[Claim],
    reference: dict[str, Any] | None,
) -> list[dict[str, str]]:
    """How to get stronger evidence than this run's: [{command, words}], empty where every headline is decided."""
    steps = []
    if any("standin" in claim["kinds_of_data"] for claim in claims):
        fetched = [item for item in paper.get("data", []) if not item["manual"]]
        if fetched:
            size = sum(item["megabytes"] for item in fetched)
            names = " ".join(item["name"] for item in fetched)
            steps.append({"command": f'make data ONLY="{names}"', "words": f"fetches the real data, {size:,.0f} MB"})
        for item in (item for item in paper.get("data", []) if item["manual"]):
            words = "no address serves it: config/datasets.yaml says how to get it"
            steps.append({"command": "", "words": f"{item['title']}: {words}"})
    if any(headline["verdict"] not in DECIDED for headline in headlines):
        kept = (reference or {}).get("claims", {})
        scale = next((c["scale"] for c in kept.values() if c["study"] == study and c["scale"]), "paper")
        at = {claim["scale"] for claim in claims}
        time = (reference or {}).get("seconds", {}).get(study, "")
        if at != {scale}:
            words = f"the reference's settings; its training took {time}" if time else "the published settings"
            steps.append({"command": f"make reproduce SCALE={scale} ONLY={study}", "words": words})
    return steps
