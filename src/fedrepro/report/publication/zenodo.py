"""CITATION.cff, and from it and the studies the metadata of a Zenodo deposit, as `.zenodo.json` has them.

Zenodo has no validator that works without its server: docs/publish.md says what a test compares.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fedrepro.core.study import Study
from fedrepro.files import ROOT, read_yaml

CITATION = ROOT / "CITATION.cff"


def citation() -> Mapping[str, Any]:
    """The content of CITATION.cff."""
    found: Mapping[str, Any] = read_yaml(CITATION)
    return found


def author_name(author: Mapping[str, str]) -> str:
    """`Family, Given` of a person, the name of anybody else."""
    return author.get("name") or ", ".join(filter(None, (author.get("family-names"), author.get("given-names"))))


def deposit(
    cited: Mapping[str, Any], studies: Iterable[Study], *, description: str, version: str, date: str
) -> dict[str, Any]:
    """Metadata of a deposit: who made the package, its licence, and the papers whose claims were tested."""
    creators = [
        {"name": author_name(author), **{key: author[key] for key in ("affiliation", "orcid") if key in author}}
        for author in cited["authors"]
    ]
    return {
        "title": f"Results of {cited['title']}",
        "description": description,
        "upload_type": "dataset",
        "access_right": "open",
        "license": cited["license"],
        "creators": creators,
        "keywords": list(cited["keywords"]),
        "version": version,
        "publication_date": date,
        "related_identifiers": related(studies),
    }


def related(studies: Iterable[Study]) -> list[dict[str, str]]:
    """The papers, each once, by the best identifier that its link holds."""
    links = dict.fromkeys(study.link for study in studies)
    return [{**identifier(link), "relation": "references"} for link in links]


def identifier(link: str) -> dict[str, str]:
    """{identifier, scheme} of a paper's address: arXiv, DOI, else the address itself."""
    if found := re.fullmatch(r"https?://arxiv\.org/abs/(\d{4}\.\d{4,5})(?:v\d+)?", link):
        return {"identifier": f"arXiv:{found[1]}", "scheme": "arxiv"}
    if found := re.fullmatch(r"https?://(?:dx\.)?doi\.org/(10\..+)", link):
        return {"identifier": found[1], "scheme": "doi"}
    return {"identifier": link, "scheme": "url"}
