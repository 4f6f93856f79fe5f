"""Reading and checking config files: plain YAML, closed schemas, errors of one line.

An error names the file, the key and, where a name is wrong, the nearest valid one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from fedrepro.core.located import Located, Place
from fedrepro.errors import UserError, nearest

if TYPE_CHECKING:
    import jsonschema

ROOT = Path(__file__).resolve().parents[3]  # the checkout: the package is installed in place
SCHEMAS = ROOT / "workflow" / "schemas"


#: what reads YAML's characters: in C where PyYAML has it, ten times as fast; composing and constructing stay in Python
if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _FastReader(Composer, CParser, SafeConstructor, Resolver):
        def __init__(self, stream: str) -> None:
            CParser.__init__(self, stream)
            for part in (Composer, SafeConstructor, Resolver):
                part.__init__(self)


_Reader: Any = _FastReader if yaml.__with_libyaml__ else yaml.SafeLoader


class _Loader(_Reader):
    """Safe YAML without the two things a config never needs: duplicate keys and aliases (which can explode)."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise UserError(f"line {self.peek_event().start_mark.line + 1}: YAML aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        self.keys_of(node)
        return super().construct_mapping(node, deep)

    def keys_of(self, node: yaml.MappingNode) -> list[str]:
        keys: dict[str, None] = {}
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise UserError(f"line {key_node.start_mark.line + 1}: key {key!r} must be text")
            if key in keys:
                raise UserError(f"line {key_node.start_mark.line + 1}: key '{key}' appears twice")
            keys[key] = None
        return list(keys)


def read_yaml(path: Path) -> Any:
    """The file's content. A syntax error is one line with file and line number."""
    return _read(path, lambda loader, text: loader.get_single_data())


def read_located(path: Path) -> Located:
    """The file's content, each value with its place."""

    def located(loader: _Loader, text: str) -> Located:
        node, lines = loader.get_single_node(), text.splitlines()

        def locate(node: yaml.Node, line: int, key: str) -> Located:
            places = (Place(path, line, key),)
            if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
                pairs = zip(loader.keys_of(node), node.value, strict=True)
                found = {name: locate(value, at.start_mark.line + 1, name) for name, (at, value) in pairs}
                return Located(found, "{}" if node.flow_style else "", places)
            value, start, end = loader.construct_object(node, deep=True), node.start_mark, node.end_mark
            one_line = start.line == end.line and start.line < len(lines)
            return Located(value, lines[start.line][start.column : end.column] if one_line else repr(value), places)

        return Located(None, "", (Place(path, 1, ""),)) if node is None else locate(node, 1, "")

    return _read(path, located)


def _read(path: Path, what: Callable[[_Loader, str], Any]) -> Any:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return what(_Loader(text), text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: a date or number that is none
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise UserError(f"{path}: {line}{getattr(error, 'problem', None) or 'not valid YAML'}") from None


@cache
def _validator() -> Any:
    """The class of validators. 2.0 is an integer to JSON, but not to Python's range and numpy's shapes, nor here."""
    import jsonschema  # here: where its optional formats are installed it takes 1.4 s

    base = jsonschema.Draft202012Validator
    checker = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(base, type_checker=checker)


@cache
def schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def validate(
    value: Any,
    name: str | dict[str, Any],
    path: Path | str,
    at: str = "",
    place: Callable[[list[Any]], list[Any]] = list,
) -> None:
    """Raise a one-line UserError where `value` breaks the schema (a name, or the schema itself).

    `at` goes before the key; `place` may turn the way to it, a list, into one that says more.
    """
    rules = schema(name) if isinstance(name, str) else name
    errors = _validator()(rules).iter_errors(value)
    # A misspelt key is also a missing one, and the misspelling is what helps.
    error = min(errors, key=lambda e: (e.validator != "additionalProperties", len(e.absolute_path)), default=None)
    if error is not None:
        error = _telling(error)
        key = ".".join(filter(None, [at, *map(str, place(list(error.absolute_path)))]))
        raise UserError(f"{path}: {_explain(error, key)}")


def _telling(error: jsonschema.ValidationError) -> jsonschema.ValidationError:
    """Of the alternatives of an anyOf or oneOf, the one that got furthest says most: a size that is too small is
    nearer to being a size than to being the word `all`."""
    while error.context and not _alternatives(error):
        error = max(error.context, key=lambda e: (len(e.absolute_path), e.validator not in ("const", "type")))
    return error


def _alternatives(error: jsonschema.ValidationError) -> list[str]:
    """The keys of a rule that asks for exactly one of several."""
    rule = error.validator_value
    if error.validator == "oneOf" and all(list(option) == ["required"] for option in rule):
        return [option["required"][0] for option in rule]
    return []


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
        case "required":
            return f"{where}: '{next(k for k in rule if k not in value)}' is missing"
        case "enum":
            return f"{where}: {value!r} is unknown{nearest(value, map(str, rule))}"
        case "type":
            wanted = " or ".join(rule) if isinstance(rule, list) else rule
            return f"{where}: {repr(value)[:80]} is not of type {wanted}"
        case "minimum" | "exclusiveMinimum":
            sign = "≥" if error.validator == "minimum" else ">"
            return f"{where}: {value!r} is too small, must be {sign} {rule}"
        case "maximum":
            return f"{where}: {repr(value)[:80]} is too large, must be ≤ {rule}"
    return f"{where}: {' '.join(error.message.split())[:200]}"


def cache_folder() -> Path:
    """What this machine keeps between runs: the data that `make data` fetched."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "fedrepro"


def data_folders(data_dir: str | None) -> list[str]:
    """Where real data may be: DATA_DIR, then what `make data` fetched. An error where DATA_DIR is not there."""
    if data_dir and not Path(data_dir).is_dir():
        raise UserError(f"data_dir: folder '{data_dir}' does not exist")
    return [*([str(data_dir)] if data_dir else []), str(cache_folder() / "data")]
