"""roc-validator without the network.

A crate of the profile names the context of RO-Crate 1.1, which the validator would fetch and no installed package has.
Its cache is filled with the definitions of the terms that our crates may use: those of ro-crate-py's copy of a later
context, and one term that was renamed since. A term that is not listed here is undefined, and the validator says so.
"""

from __future__ import annotations

import json
from pathlib import Path

import requests
import rocrate
import urllib3
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings
from rocrate_validator.utils.http import HttpRequester

PROFILE = "workflow-run-crate"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
TYPES = (
    *("Claim", "ClaimReview", "ComputerLanguage", "CreateAction", "CreativeWork", "Dataset", "File", "Organization"),
    *("Person", "PropertyValue", "Rating", "ScholarlyArticle", "SoftwareApplication", "SoftwareSourceCode"),
)
PROPERTIES = (
    *("about", "actionStatus", "alternateName", "appearance", "author", "claimReviewed", "conformsTo", "contentSize"),
    *("datePublished", "description", "encodingFormat", "endTime", "error", "hasPart", "identifier", "instrument"),
    *("isBasedOn", "itemReviewed", "keywords", "license", "mainEntity", "mentions", "name", "object", "url", "value"),
    *("programmingLanguage", "result", "reviewAspect", "reviewBody", "reviewRating", "softwareRequirements", "text"),
    "version",
)


def validate(crate: Path, work: Path) -> list[str]:
    """What the validator finds of severity REQUIRED: one line per issue. work: a folder for its cache."""
    settings = ValidationSettings(
        rocrate_uri=str(crate),
        profile_identifier=PROFILE,
        requirement_severity=Severity.REQUIRED,
        offline=True,
        cache_path=work / "http",
    )
    _remember(CONTEXT, _context())
    result = services.validate(settings)
    assert not result.context._offline_cache_misses_warned, "a check was left out"
    found = [f"{issue.check.identifier}: {issue.message}" for issue in result.get_issues()]
    assert result.passed() is (not found)
    return found


def _context() -> bytes:
    known = json.loads((Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_text(encoding="utf-8"))
    terms = {term: known["@context"][term] for term in (*TYPES, *PROPERTIES)}
    terms["ComputationalWorkflow"] = "https://bioschemas.org/ComputationalWorkflow"
    return json.dumps({"@context": terms}).encode()


def _remember(url: str, content: bytes) -> None:
    """Put an answer into the validator's cache."""
    session = HttpRequester().session
    answer = requests.Response()
    answer.status_code, answer.url, answer._content = 200, url, content
    answer.headers["Content-Type"] = "application/ld+json"
    answer.raw = urllib3.HTTPResponse(body=b"", status=200)
    answer.request = session.prepare_request(requests.Request("GET", url))
    session.cache.save_response(answer)
