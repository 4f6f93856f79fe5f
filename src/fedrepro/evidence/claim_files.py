"""Claims files: config/studies/<study>/claims.yaml, read and checked. Nothing here imports pandas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.core.config import read_yaml, validate
from fedrepro.errors import UserError
from fedrepro.evidence.expressions import check_expression


def load_claims(path: str | Path) -> dict[str, Any]:
    """The claims file, valid by the schema, with sound expressions and no id twice; else UserError."""
    claims = read_yaml(Path(path))

    def by_id(place: list[Any]) -> list[Any]:
        if len(place) < 2 or not isinstance(claims["claims"][place[1]], dict):
            return place
        return [claims["claims"][place[1]].get("id", f"claim {place[1] + 1}"), *place[2:]]

    validate(claims, "claims", path, place=by_id)
    seen = set()
    for claim in claims["claims"]:
        if claim["id"] in seen:
            raise UserError(f"{path}: claims: the id '{claim['id']}' is there twice")
        seen.add(claim["id"])
        if claim["kind"] == "consistency":
            try:
                check_expression(claim["expression"], claim["numbers"])
            except ValueError as error:
                raise UserError(f"{path}: {claim['id']}.expression: {error}") from error
    return claims


def quantities_of(claim: Any) -> Iterator[tuple[str, str]]:
    """(experiment, algorithm or "") of every quantity in a claim."""
    if isinstance(claim, dict):
        if "experiment" in claim:
            yield str(claim["experiment"]), str(claim.get("algorithm", ""))
        for value in claim.values():
            yield from quantities_of(value)
    elif isinstance(claim, list):
        for value in claim:
            yield from quantities_of(value)
