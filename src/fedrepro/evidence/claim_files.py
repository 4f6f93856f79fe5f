"""Claims files, config/studies/<study>/claims.yaml: reading and checking. Nothing here imports pandas."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedrepro.core.schemas import validate
from fedrepro.errors import UserError
from fedrepro.evidence.expressions import check_expression
from fedrepro.files import read_yaml


def load_claims(path: str | Path) -> dict[str, Any]:
    """The claims file; UserError where it breaks the schema, repeats an id or has an invalid expression."""
    claims: dict[str, Any] = read_yaml(Path(path))

    def by_id(place: list[Any]) -> list[Any]:
        if len(place) < 2 or not isinstance(claims["claims"][place[1]], dict):
            return place
        return [claims["claims"][place[1]].get("id", f"claim {place[1] + 1}"), *place[2:]]

    validate(claims, "claims", path, place=by_id)
    seen: set[str] = set()
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
    if isinstance(claim, dict) and "experiment" in claim:
        yield str(claim["experiment"]), str(claim.get("algorithm", ""))
    for value in claim.values() if isinstance(claim, dict) else claim if isinstance(claim, list) else ():
        yield from quantities_of(value)
