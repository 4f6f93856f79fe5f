"""Closed schemas: a value that breaks one is a UserError of one line, with the nearest valid name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.errors import UserError, nearest, shortened
from fedrepro.files import ROOT

if TYPE_CHECKING:
    import jsonschema

SCHEMAS = ROOT / "workflow" / "schemas"
Keys = list[Any]  # that lead to a value


@cache
def _validator() -> Any:
    """The class of validators. 2.0 is an integer in JSON, but not in Python's range or numpy's shapes, nor here. A
    number that no machine number holds is none."""
    import jsonschema  # here: with its optional formats it takes 1.4 s

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int and not _is_huge(value),
            "number": lambda _, value: type(value) in (int, float) and not _is_huge(value),
        }
    )
    return jsonschema.validators.extend(base, type_checker=checker)


def _is_huge(value: Any) -> bool:
    return type(value) is int and not -(2**63) <= value < 2**63


@cache
def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


def validate(
    value: Any, name: str | dict[str, Any], path: Path | str, at: str = "", place: Callable[[Keys], Keys] = list
) -> None:
    """Raise a one-line UserError if `value` breaks the schema (its name, or the schema itself). `at` goes before the
    key; `place` may turn the list of keys that leads to it into a more telling one."""
    rules = schema(name) if isinstance(name, str) else name
    errors = _validator()(rules).iter_errors(value)
    # A misspelt key is also a missing one; the misspelling helps more.
    error = min(errors, key=lambda e: (e.validator != "additionalProperties", len(e.absolute_path)), default=None)
    if error is not None:
        error = _telling(error)
        key = ".".join(filter(None, [at, *map(str, place(list(error.absolute_path)))]))
        raise UserError(f"{path}: {_explain(error, key)}")


def _telling(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Of the alternatives of an anyOf or oneOf, the one that got furthest: a size that is too small is nearer to a
    size than to the word `all`."""
    while error.context and not _alternatives(error):
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator not in ("const", "type")))
    return error


def _alternatives(error: jsonschema.ValidationError) -> list[str]:
    """The keys of a rule that requires one of several."""
    rule = error.validator_value
    plain = error.validator in ("oneOf", "anyOf") and all(list(option) == ["required"] for option in rule)
    return [option["required"][0] for option in rule] if plain else []


def _explain(error: jsonschema.ValidationError, key: str) -> str:
    value, rule, where = error.instance, error.validator_value, key or "the file"
    match error.validator:
        case "additionalProperties":
            valid = error.schema.get("properties", {})
            pattern = re.compile("|".join(error.schema.get("patternProperties", {})) or r"(?!)")
            unknown = next(k for k in value if k not in valid and not pattern.search(k))
            return f"unknown key '{key}{'.' if key else ''}{unknown}'{nearest(unknown, valid)}"
        case "oneOf" if _alternatives(error):
            return f"{where}: needs exactly one of {', '.join(_alternatives(error))}"
        case "anyOf" if _alternatives(error):
            return f"{where}: needs {' or '.join(_alternatives(error))}"
        case "not" if not rule:
            return f"{where}: cannot be changed here"
        case "required":
            return f"{where}: '{next(k for k in rule if k not in value)}' is missing"
        case "enum":
            return f"{where}: {shortened(repr(value), 80)} is unknown{nearest(value, map(str, rule))}"
        case "type" if _is_huge(value):
            return f"{where}: {shortened(str(value), 80)} is too large"
        case "type":
            wanted = " or ".join(rule) if isinstance(rule, list) else rule
            return f"{where}: {shortened(repr(value), 80)} is not of type {wanted}"
        case "minimum" | "exclusiveMinimum":
            sign = "≥" if error.validator == "minimum" else ">"
            return f"{where}: {shortened(repr(value), 80)} is too small, must be {sign} {rule}"
        case "maximum":
            return f"{where}: {shortened(repr(value), 80)} is too large, must be ≤ {rule}"
    return f"{where}: {' '.join(error.message.split())[:200]}"
