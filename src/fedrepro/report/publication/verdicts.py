"""Each verdict as an assertion: what the paper says, what we found, and the files that the finding rests on.

A claim or headline is a schema.org `Claim` that appears in a paper; our verdict on it a `ClaimReview`, whose rating is
one of six terms and which `isBasedOn` the row's table, the rule, the numbers per seed and the manifests of the runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fedrepro.core.study import Study
from fedrepro.errors import UserError
from fedrepro.evidence.claim_files import Claim, load_claims
from fedrepro.report.claim_runs import runs_behind
from fedrepro.report.claims import ORIGINS, UNKNOWN, VERDICTS
from fedrepro.report.formats import interval_text

Entity = dict[str, Any]
Row = Mapping[str, str]
TOLD = ("origin", "kind", "source", "scale", "data", "seeds", "evidence")  # columns of the ledger that become keywords


@dataclass(frozen=True)
class Sources:
    """What verdicts are made from: the rows of the joint tables, and the places of files in the published folder."""

    results: Path  # the published results
    prefix: str  # their place in the published folder
    claims: Sequence[Row]
    headlines: Sequence[Row]
    current: frozenset[str]  # manifests of the current jobs, relative to results; of older ones no claim is made
    settings: Mapping[str, str]  # study → place of its config folder in the published folder

    def files(self, *names: str) -> list[Entity]:
        """References to those of the files that exist."""
        return [ref(f"{self.prefix}{name}") for name in names if (self.results / name).is_file()]


def ref(id: str) -> Entity:
    return {"@id": id}


def paper_id(study: Study) -> str:
    """Not the paper's address, which two studies may share."""
    return f"#paper/{study.name}"


def claim_id(name: str) -> str:
    return f"#claim/{quote(name)}"


def verdict_id(name: str) -> str:
    return f"#verdict/{quote(name)}"


def rating_id(verdict: str) -> str:
    return f"#rating/{quote(verdict.replace(' ', '-'))}"


def entities(studies: Mapping[str, Study], sources: Sources, authors: Any) -> Iterator[Entity]:
    """Papers, ratings, claims and the verdicts on them."""
    for study in studies.values():
        yield {
            "@id": paper_id(study),
            "@type": "ScholarlyArticle",
            "name": study.title,
            "description": f"{', '.join(study.authors)}; {study.venue}",
            "url": study.link,
        }
    for verdict in dict.fromkeys(row["verdict"] for row in (*sources.claims, *sources.headlines)):
        meaning = VERDICTS.get(verdict, UNKNOWN)[2]
        yield {
            "@id": rating_id(verdict),
            "@type": "Rating",
            "name": verdict,
            "alternateName": verdict,
            "description": meaning,
        }
    for name, study in studies.items():
        path = study.file("claims.yaml")
        declared = load_claims(path, checked=False).claims if path else {}
        for row in (row for row in sources.claims if row["study"] == name):
            yield from _claim(row, study, _declared(row, declared), sources, authors)
    for row in sources.headlines:
        yield from _headline(row, studies[row["study"]], sources, authors)


def _declared(row: Row, declared: Mapping[str, Claim]) -> Claim:
    claim = row["claim"].partition("/")[2]
    if claim not in declared:
        raise UserError(
            f"{row['claim']}: is in the ledger, but no longer in claims.yaml: run `make reproduce` again, then publish"
        )
    return declared[claim]


def _claim(row: Row, study: Study, claim: Claim, sources: Sources, authors: Any) -> Iterator[Entity]:
    """A claim and its verdict. Claims of our own appear in no paper."""
    name, said = row["claim"], row["paper_says"] or row["statement"]
    from_paper = {"appearance": ref(paper_id(study))} if row["origin"] != "added" else {}
    yield {
        "@id": claim_id(name),
        "@type": "Claim",
        "name": name,
        "identifier": name,
        "text": said,
        "description": row["statement"],
        **from_paper,
    }
    runs = (path.relative_to(sources.results).as_posix() for path in runs_behind(sources.results, study.name, claim))
    per_study = [f"{kind}/{study.name}.csv" for kind in ("numbers", "readings")]
    measured = " ".join(filter(None, (row["ours"], interval_text(row["ci_low"], row["ci_high"]))))
    rules = [rule for rule in ("claims.yaml", "published.csv") if study.file(rule)]
    yield {
        **_review(name, row, said, authors),
        "reviewAspect": row["our_test"],
        "reviewBody": "; ".join(filter(None, (row["reason"], f"ours: {measured}" * bool(measured), row["reading"]))),
        "keywords": [ORIGINS.get(row["origin"], row["origin"]), *(f"{key}: {row[key]}" for key in TOLD if row[key])],
        "isBasedOn": [
            *sources.files("ledger.csv", *per_study),
            *(ref(f"{sources.settings[study.name]}/{rule}") for rule in rules),
            *sources.files(*(run for run in runs if run in sources.current)),
        ],
    }


def _headline(row: Row, study: Study, sources: Sources, authors: Any) -> Iterator[Entity]:
    """A headline and its verdict, which follows from those on its claims."""
    name = f"{row['study']}/headline/{row['headline']}"
    yield {
        "@id": claim_id(name),
        "@type": "Claim",
        "name": name,
        "identifier": name,
        "text": row["quote"],
        "description": row["says"],
        "appearance": ref(paper_id(study)),
    }
    judged = {claim["claim"] for claim in sources.claims}
    behind = (claim if "/" in claim else f"{row['study']}/{claim}" for claim in row["claims"].split())
    yield {
        **_review(name, row, row["quote"], authors),
        "reviewBody": row["reason"],
        "keywords": ["headline", f"source: {row['place']}", f"rule: {row['rule']}"],
        "isBasedOn": [
            *sources.files("headlines.csv"),
            ref(f"{sources.settings[study.name]}/study.yaml"),
            *(ref(verdict_id(claim)) for claim in behind if claim in judged),
        ],
    }


def _review(name: str, row: Row, said: str, authors: Any) -> Entity:
    return {
        "@id": verdict_id(name),
        "@type": "ClaimReview",
        "name": f"{name}: {row['verdict']}",
        "identifier": name,
        "claimReviewed": said,
        "itemReviewed": ref(claim_id(name)),
        "reviewRating": ref(rating_id(row["verdict"])),
        "author": authors,
    }
