"""Experiments from a study's files: `extends`, `without`, `for_each`, `only_for`. Every value knows its file and line.

A file `extends` another of its folder: blocks are merged, everything else replaces, and the keys listed under
`without` are dropped from the inherited part. Files whose names begin with `_` are only extended. A file with
`for_each` is several experiments: every combination of one case per axis, named by `id`. A case gives values, which
fill `{placeholders}`, and changes, which are merged over the file; `only_for` changes one of the experiments. A scale
may extend another scale. Nothing is computed: each value is written in a file.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fedrepro.core import open_settings
from fedrepro.core.schemas import schema, validate
from fedrepro.errors import UserError, nearest
from fedrepro.files import SafeYaml, parse_yaml

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
MOST_EXPERIMENTS = 200  # per file; a larger product is a mistake
SECTIONS = tuple(schema("experiment")["properties"])  # of an experiment, in their order


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
    text: str  # as written; for a mapping "{}" if it is on the line of its key, else ""
    places: tuple[Place, ...]  # its own, then others where a comment on it may be

    @property
    def file(self) -> Path:
        return self.places[0].file

    @property
    def is_block(self) -> bool:
        return isinstance(self.value, dict)

    def plain(self) -> Any:
        return {key: child.plain() for key, child in self.value.items()} if self.is_block else self.value

    def written(self) -> str:
        """The value as written; empty for a block on lines of its own."""
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
        return self._replace(value={key: child for key, child in self.value.items() if keep(key)})

    def merged(self, over: Located, key: str = "") -> Located:
        """`over` merged over this: blocks are merged, everything else replaces; new keys come last."""
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
        """This without the key, where `*` matches every name; `said` begins the error if the key is missing."""
        first, _, rest = dotted.partition(".")
        names = list(self.value) if self.is_block else []
        if first == "*" and rest:
            chosen = names = [name for name in names if self.value[name]._has(rest)]
        else:
            chosen = [first] if first in names else []
        if not chosen:
            raise UserError(f"{said} is not there{nearest(first, names)}")
        if not rest:
            return self.only(lambda key: key != first)
        return self._replace(value=self.value | {name: self.value[name].without(rest, said) for name in chosen})

    def _has(self, dotted: str) -> bool:
        first, _, rest = dotted.partition(".")
        return self.is_block and first in self.value and (not rest or self.value[first]._has(rest))

    def filled(self, values: Mapping[str, Located], key: str) -> Located:
        """This with its placeholders filled; a text that is one placeholder takes the value and its type."""
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
        if (filled := fill(self.value)) == self.value:
            return self
        return Located(filled, json.dumps(filled, ensure_ascii=False, default=str), self.places)


def read_located(path: Path) -> Located:
    """The file's content, each value with its place."""

    def located(loader: SafeYaml, text: str) -> Located:
        root, lines = loader.get_single_node(), text.splitlines()

        def locate(node: yaml.Node, line: int, key: str) -> Located:
            places = (Place(path, line, key),)
            if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
                pairs = zip(loader.keys_of(node), node.value, strict=True)
                found = {name: locate(value, at.start_mark.line + 1, name) for name, (at, value) in pairs}
                return Located(found, "{}" if node.flow_style else "", places)
            value, start, end = loader.construct_object(node, deep=True), node.start_mark, node.end_mark
            one_line = start.line == end.line and start.line < len(lines)
            return Located(value, lines[start.line][start.column : end.column] if one_line else repr(value), places)

        return Located(None, "", (Place(path, 1, ""),)) if root is None else locate(root, 1, "")

    found: Located = parse_yaml(path, located)
    return found


class Expanded(NamedTuple):
    """One experiment, before a scale is applied."""

    name: str
    path: Path  # of its own file
    files: tuple[Path, ...]  # all that it is read from, its own first
    tree: Located

    def said_in(self, *way: object) -> str:
        """The file with the value at the end of the way; with the experiment's name if the file has several."""
        return f"{self.tree.at(*way).file}{'' if self.name == self.path.stem else f' ({self.name})'}"


def expand(files: Iterable[Path]) -> dict[str, Expanded]:
    """Every experiment of one study, by name; `files` are all of its folder."""
    paths = {path.stem: path for path in files}
    read: dict[str, Located] = {}
    found: dict[str, Expanded] = {}
    for stem in paths:
        for e in () if stem.startswith("_") else _experiments(stem, paths, read):
            if e.name in found:
                raise UserError(f"{e.path}: id: '{e.name}' is an experiment of {found[e.name].path.name} already")
            found[e.name] = e
    open_settings.check_used(read.values(), (e.tree for e in found.values()))
    return dict(sorted(found.items()))


def _experiments(stem: str, paths: Mapping[str, Path], read: dict[str, Located]) -> Iterator[Expanded]:
    """The experiments of one file."""

    def content(name: str) -> Located:
        if name not in read:
            found = read_located(paths[name])
            validate(found.plain(), "experiment_file", paths[name])
            read[name] = found
        return read[name]

    path, chain = paths[stem], _chain(stem, content, paths, "extends")
    body = Located({}, "", (Place(path, 1, ""),))
    for name in reversed(chain):
        body = changed(body, content(name))
    files = tuple(paths[name] for name in chain)
    axes, template, single = (body.value.get(key) for key in ("for_each", "id", "only_for"))
    if axes is None:
        if template or single:
            raise UserError(f"{path}: {'id' if template else 'only_for'}: is possible with for_each only")
        yield Expanded(stem, path, files, _settled(body, {}, path))
        return
    if template is None:
        raise UserError(f'{path}: for_each: needs an id, such as id: "{"_".join(f"{{{a}}}" for a in axes.value)}"')
    number = math.prod(len(given.value) for given in axes.value.values())
    if number > MOST_EXPERIMENTS:
        raise UserError(f"{path}: for_each: {number} experiments, at most {MOST_EXPERIMENTS} are possible")
    left, names = dict(single.value) if single else {}, []
    for chosen in itertools.product(
        *(cases(axis, given, (*SECTIONS, "without")) for axis, given in axes.value.items())
    ):
        values: dict[str, Located] = {}
        mine = body
        for key, given, changes in chosen:
            if twice := values.keys() & given:
                raise UserError(f"{changes.file}: {key}: two axes give '{min(twice)}'")
            values |= given
            mine = changed(mine, changes, f"{key}.")
        names.append(name := str(template.filled(values, "id").value))
        if name in left:
            mine = changed(mine, left.pop(name), f"only_for.{name}.")
        yield Expanded(name, path, files, _settled(mine, values, path))
    for name in left:
        raise UserError(f"{path}: only_for: '{name}' is unknown{nearest(name, names)}")


def _chain(name: str, get: Callable[[str], Located], known: Collection[str], key: str) -> list[str]:
    """The name, what it extends, what that extends, and so on."""
    chain = [name]
    while (base := get(chain[-1]).value.get("extends")) is not None:
        if not isinstance(base.value, str) or base.value not in known:
            raise UserError(f"{base.file}: {key}: '{base.value}' is unknown{nearest(base.value, known)}")
        if base.value in chain:
            raise UserError(f"{base.file}: {key}: {' extends '.join([*chain, base.value])}, a circle")
        chain.append(base.value)
    return chain


def cases(axis: str, given: Located, sections: Collection[str]) -> Iterator[tuple[str, dict[str, Located], Located]]:
    """(key, values, changes) of every case of an axis; the name of the case is a value, too. A part of a case that is
    one of the sections is a change."""
    if isinstance(given.value, list):
        for item in given.value:
            yield f"for_each.{axis}", {axis: Located(item, str(item), given.places)}, Located({}, "", given.places)
        return
    for name, case in given.value.items():
        key = f"for_each.{axis}.{name}"
        changes = case.only(lambda part: part in sections)
        values = {part: value for part, value in case.value.items() if part not in changes.value}
        for part, value in values.items():
            if value.is_block:
                raise UserError(f"{value.file}: {key}.{part}: is not a key{nearest(part, sections)}")
            if PLACEHOLDER.search(str(value.value)):
                raise UserError(f"{value.file}: {key}.{part}: a value cannot hold a placeholder")
        yield key, {axis: Located(name, _quoted(name), case.places), **values}, changes


def _quoted(name: str) -> str:
    """A text as YAML has to have it: a number in quotes is a text."""
    try:
        return name if yaml.safe_load(name) == name else json.dumps(name)
    except yaml.YAMLError:
        return json.dumps(name)


def changed(body: Located, changes: Located, at: str = "") -> Located:
    """`changes` merged over the body, after the keys that they list under `without` have been dropped. Assumptions go
    with the values that they are about."""
    dropped = changes.value["without"].value if "without" in changes.value else ()
    if not isinstance(dropped, list | tuple):
        raise UserError(f"{changes.file}: {at}without: is not a list of keys")
    for dotted in dropped:
        body = body.without(dotted, f"{changes.file}: {at}without: '{dotted}'")
    over = changes.only(lambda key: key not in ("without", "extends"))
    apart = (part.only(lambda key: key != open_settings.SECTION) for part in (body, over))
    return open_settings.carried(next(apart).merged(next(apart)), body, over)


def _settled(body: Located, values: Mapping[str, Located], path: Path) -> Located:
    """The body with its placeholders filled, its sections in order and its scales complete."""
    tree = {key: body.value[key].filled(values, key) for key in SECTIONS if key in body.value}
    if "scales" in tree:
        scales, whole = tree["scales"].value, {}
        for name in scales:
            *over, base = _chain(name, scales.__getitem__, scales, f"scales.{name}.extends")
            whole[name] = scales[base]
            for part in reversed(over):
                whole[name] = whole[name].merged(scales[part].only(lambda key: key != "extends"), f"scales.{name}")
        tree["scales"] = tree["scales"]._replace(value=whole)
    return Located(tree, "", (Place(path, 1, ""),))
