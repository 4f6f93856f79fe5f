"""Values of config files that know the file and the line where they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fedrepro.errors import UserError, nearest
from fedrepro.files import SafeYaml, parse_yaml

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


class Place(NamedTuple):
    """A file, a line of it, and the key there."""

    file: Path
    line: int
    key: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Located(NamedTuple):
    """A value with its place. A mapping holds located values; everything else, lists too, is plain."""

    value: Any
    text: str  # as it is written; of a mapping "{}" where it stands on the line of its key, else ""
    places: tuple[Place, ...]  # where it stands, then where else a comment on it may stand

    @property
    def file(self) -> Path:
        return self.places[0].file

    @property
    def is_block(self) -> bool:
        return isinstance(self.value, dict)

    def plain(self) -> Any:
        return {key: child.plain() for key, child in self.value.items()} if self.is_block else self.value

    def written(self) -> str:
        """The value as it is written; nothing for a block on lines of its own."""
        if not (self.is_block and self.text):
            return self.text
        return "{" + ", ".join(f"{key}: {child.written()}" for key, child in self.value.items()) + "}"

    def at(self, *keys: object) -> Located:
        """The value at the end of the way, or the nearest block on it."""
        node = self
        for key in keys:
            if not node.is_block or key not in node.value:
                break
            node = node.value[key]
        return node

    def only(self, keep: Callable[[str], bool]) -> Located:
        """The block with the keys that `keep` says yes to."""
        return self._replace(value={key: child for key, child in self.value.items() if keep(key)})

    def merged(self, over: Located, key: str = "") -> Located:
        """This with `over` merged over it: blocks are merged, everything else replaces; what is new comes last."""
        if self.is_block is not over.is_block:
            what = "a block by a value" if self.is_block else "a value by a block"
            raise UserError(f"{over.file}: {key}: replaces {what}, that of {self.places[0]}")
        if not self.is_block:
            return over
        whole = dict(self.value)
        for name, child in over.value.items():
            whole[name] = whole[name].merged(child, f"{key}.{name}".lstrip(".")) if name in whole else child
        return Located(whole, self.text and over.text, over.places + self.places)

    def without(self, dotted: str, said: str) -> Located:
        """This without the key, in which `*` stands for every name; `said` begins the error where it is not there."""
        first, _, rest = dotted.partition(".")
        names = list(self.value) if self.is_block else []
        if first == "*" and rest:
            names = [name for name in names if self.value[name]._has(rest)]
            if names:
                return self._replace(value={**self.value, **{n: self.value[n].without(rest, said) for n in names}})
        if first not in names:
            raise UserError(f"{said} is not there{nearest(first, names)}")
        if not rest:
            return self.only(lambda key: key != first)
        return self._replace(value={**self.value, first: self.value[first].without(rest, said)})

    def _has(self, dotted: str) -> bool:
        first, _, rest = dotted.partition(".")
        return self.is_block and first in self.value and (not rest or self.value[first]._has(rest))

    def filled(self, values: Mapping[str, Located], key: str) -> Located:
        """This with its placeholders filled; a text that is one placeholder takes the value as it is."""
        if self.is_block:
            parts = {name: child.filled(values, f"{key}.{name}") for name, child in self.value.items()}
            return self._replace(value=parts)
        if "{" not in self.text:
            return self

        def value_of(found: re.Match[str]) -> Located:
            if found[1] not in values:
                raise UserError(f"{self.file}: {key}: {found[0]} has no value{nearest(found[1], values)}")
            return values[found[1]]

        def fill(value: Any) -> Any:
            if isinstance(value, list):
                return [fill(item) for item in value]
            if not isinstance(value, str):
                return value
            whole = PLACEHOLDER.fullmatch(value)
            return value_of(whole).value if whole else PLACEHOLDER.sub(lambda found: str(value_of(found).value), value)

        if isinstance(self.value, str) and (whole := PLACEHOLDER.fullmatch(self.value)):
            return (value := value_of(whole))._replace(places=value.places + self.places)
        filled = fill(self.value)
        return (
            self
            if filled == self.value
            else Located(filled, json.dumps(filled, ensure_ascii=False, default=str), self.places)
        )


def read_located(path: Path) -> Located:
    """The file's content, each value with its place."""

    def located(loader: SafeYaml, text: str) -> Located:
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

    found: Located = parse_yaml(path, located)
    return found
