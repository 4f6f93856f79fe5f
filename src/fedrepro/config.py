"""Reading and checking config files: plain YAML, closed schemas, errors of one line.

An error names the file, the key and, where a name is wrong, the nearest valid one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from fedrepro.errors import UserError, nearest

ROOT = Path(__file__).resolve().parents[2]  # the checkout: the package is installed in place
SCHEMAS = ROOT / "workflow" / "schemas"


class _Loader(yaml.SafeLoader):
    """Safe YAML without the two things a config never needs: duplicate keys and aliases (which can explode)."""

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            raise UserError(f"line {self.peek_event().start_mark.line + 1}: YAML aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise UserError(f"line {key_node.start_mark.line + 1}: key {key!r} must be text")
            if key in seen:
                raise UserError(f"line {key_node.start_mark.line + 1}: key '{key}' appears twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """The file's content. A syntax error is one line with file and line number."""
    try:
        return yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{path}: {line}{getattr(error, 'problem', None) or 'not valid YAML'}") from None


# JSON takes 2.0 for an integer; Python's range and numpy's shapes do not.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda checker, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


@cache
def schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def validate(value: Any, name: str | dict[str, Any], path: Path | str, at: str = "") -> None:
    """Raise a one-line UserError where `value` breaks the schema (a name, or the schema itself)."""
    rules = schema(name) if isinstance(name, str) else name
    errors = _Validator(rules).iter_errors(value)
    error = min(errors, key=lambda e: (len(e.absolute_path), str(e.validator)), default=None)
    if error is not None:
        raise UserError(f"{path}: {_explain(_deepest(error), at)}")


def _deepest(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Of the alternatives of an anyOf or oneOf, the one that got furthest says most: a size that is too small is
    nearer to being a size than to being the word `all`."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator not in ("const", "type")))
    return error


def _explain(error: jsonschema.ValidationError, at: str) -> str:
    key = ".".join(filter(None, [at, *map(str, error.absolute_path)])) or "the file"
    if error.validator == "additionalProperties":
        valid = error.schema.get("properties", {})
        for unknown in error.instance:
            if unknown not in valid:
                where = f"{key}.{unknown}" if key != "the file" else unknown
                return f"unknown key '{where}'{nearest(unknown, valid)}"
    if error.validator == "required":
        missing = next(k for k in error.validator_value if k not in error.instance)
        return f"{key}: '{missing}' is missing"
    if error.validator == "enum":
        return f"{key}: {error.instance!r} is unknown{nearest(error.instance, map(str, error.validator_value))}"
    if error.validator == "type":
        wanted = error.validator_value
        wanted = " or ".join(wanted) if isinstance(wanted, list) else wanted
        return f"{key}: {error.instance!r} is not of type {wanted}"
    if error.validator in ("minimum", "exclusiveMinimum"):
        sign = "≥" if error.validator == "minimum" else ">"
        return f"{key}: {error.instance!r} is too small, must be {sign} {error.validator_value}"
    return f"{key}: {error.message.splitlines()[0][:200]}"
