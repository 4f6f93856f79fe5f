"""What the files of a study's experiments come to: `extends`, `without`, `for_each`, `only_for`.

A file `extends` another of its folder: blocks are merged, everything else replaces, and the keys listed under
`without` are dropped from what is inherited. Files whose names begin with `_` are only extended. A file with
`for_each` is several experiments: every combination of one case per axis, named by `id`. A case gives values, which
fill `{placeholders}`, and changes, which are merged over the file; `only_for` changes one of the experiments. A scale
may extend another scale. Nothing is computed: each value stands in a file, and the result knows where.
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fedrepro.core.located import PLACEHOLDER, Located, Place, read_located
from fedrepro.core.schemas import schema, validate
from fedrepro.errors import UserError, nearest

MOST_EXPERIMENTS = 200  # of one file; a larger product is a mistake
SECTIONS = tuple(schema("experiment")["properties"])  # of an experiment, in their order


class Expanded(NamedTuple):
    """One experiment, before a scale is applied."""

    name: str
    path: Path  # of its own file
    files: tuple[Path, ...]  # all that it is read from, its own first
    tree: Located

    def said_in(self, *way: object) -> str:
        """The file in which the value at the end of the way stands; with the name, where a file has several."""
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
    body = content(chain[-1])
    for name in reversed(chain[:-1]):
        body = _changed(body, content(name))
    files = tuple(paths[name] for name in chain)
    axes, template, single = (body.value.get(key) for key in ("for_each", "id", "only_for"))
    if axes is None:
        if template or single:
            raise UserError(f"{path}: {'id' if template else 'only_for'}: is possible with for_each only")
        yield Expanded(stem, path, files, _settled(body, {}, path))
        return
    if template is None:
        raise UserError(f'{path}: for_each: needs an id, such as id: "{"_".join(f"{{{a}}}" for a in axes.value)}"')
    number = math.prod(len(cases.value) for cases in axes.value.values())
    if number > MOST_EXPERIMENTS:
        raise UserError(f"{path}: for_each: {number} experiments, at most {MOST_EXPERIMENTS} are possible")
    left, names = dict(single.value) if single else {}, []
    for chosen in itertools.product(*(_cases(axis, cases) for axis, cases in axes.value.items())):
        values: dict[str, Located] = {}
        mine = body
        for key, given, changes in chosen:
            if twice := values.keys() & given:
                raise UserError(f"{changes.file}: {key}: two axes give '{min(twice)}'")
            values |= given
            mine = _changed(mine, changes, f"{key}.")
        names.append(name := str(template.filled(values, "id").value))
        if name in left:
            mine = _changed(mine, left.pop(name), f"only_for.{name}.")
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


def _cases(axis: str, cases: Located) -> Iterator[tuple[str, dict[str, Located], Located]]:
    """(key, values, changes) of every case of an axis; the case's name is a value, too."""
    if isinstance(cases.value, list):
        for item in cases.value:
            yield f"for_each.{axis}", {axis: Located(item, str(item), cases.places)}, Located({}, "", cases.places)
        return
    for name, case in cases.value.items():
        key = f"for_each.{axis}.{name}"
        changes = case.only(lambda part: part in (*SECTIONS, "without"))
        values = case.only(lambda part, changes=changes: part not in changes.value).value
        for part, value in values.items():
            if value.is_block:
                raise UserError(f"{value.file}: {key}.{part}: is no part of an experiment{nearest(part, SECTIONS)}")
            if PLACEHOLDER.search(str(value.value)):
                raise UserError(f"{value.file}: {key}.{part}: a value cannot hold a placeholder")
        yield key, {axis: Located(name, name, case.places), **values}, changes


def _changed(body: Located, changes: Located, at: str = "") -> Located:
    """`changes` merged over the body, after what they list under `without` has been dropped from it."""
    for dotted in changes.value["without"].value if "without" in changes.value else ():
        body = body.without(dotted, f"{changes.file}: {at}without: '{dotted}'")
    return body.merged(changes.only(lambda key: key not in ("without", "extends")))


def _settled(body: Located, values: Mapping[str, Located], path: Path) -> Located:
    """The body with its placeholders filled, its sections in order and its scales whole."""
    tree = {key: body.value[key].filled(values, key) for key in SECTIONS if key in body.value}
    if "scales" in tree:
        scales = tree["scales"].value
        whole = {}
        for name in scales:
            chain = _chain(name, scales.__getitem__, scales, f"scales.{name}.extends")
            whole[name] = scales[chain.pop()]
            while chain:
                whole[name] = whole[name].merged(
                    scales[chain.pop()].only(lambda key: key != "extends"), f"scales.{name}"
                )
        tree["scales"] = tree["scales"]._replace(value=whole)
    return Located(tree, "", (Place(path, 1, ""),))
