"""`assumptions:` of an experiment's files: the settings that the paper leaves open.

    assumptions:
      dataset.noise: {why: the paper gives none, also: [0.1, 1.0]}
      algorithms.*.lr: {why: not stated, also: [0.01]}             # `*`: every name; all of them change together
      dataset.law: {why: not stated, also: [{dataset.law: normal, dataset.width: 2.0}]}  # several settings at once
      seeds: {why: the paper shows one run, because: more seeds narrow an interval and do not move it}

`also` lists the other values that a reasonable reader would take; `because` says why there are none. An assumption
belongs to a value: a file or a case that replaces the value states its own, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fedrepro.errors import UserError

if TYPE_CHECKING:
    from fedrepro.core.expansion import Located

SECTION = "assumptions"


def carried(whole: Located, body: Located, over: Located) -> Located:
    """`whole`, which is `over` merged over the body, with the assumptions that hold in it."""
    old = body.value[SECTION].value.items() if SECTION in body.value else ()
    found = {key: about for key, about in old if _has(whole, key) and not _replaced(over, key)}
    for pattern, about in over.value[SECTION].value.items() if SECTION in over.value else ():
        found |= dict.fromkeys(_matching(whole, pattern.split(".")), about)
    parts = {key: value for key, value in whole.value.items() if key != SECTION}
    return whole._replace(value=parts | {SECTION: whole._replace(value=found, text="")} if found else parts)


def check_used(files: Iterable[Located], experiments: Iterable[Located]) -> None:
    """Raise a UserError for an assumption that no experiment has: its key is misspelt, or its value gone."""
    used = {about.places[0] for tree in experiments for about in _stated(tree)}
    for about in (about for file in files for about in _everywhere(file)):
        if (place := about.places[0]) not in used:
            raise UserError(f"{place}: {SECTION}: '{place.key}' is a setting of no experiment")


def _stated(tree: Located) -> Iterable[Located]:
    return tree.value[SECTION].value.values() if SECTION in tree.value else ()


def _everywhere(tree: Located) -> Iterator[Located]:
    """The assumptions of a file: its own, and those of its cases and single experiments."""
    yield from _stated(tree)
    cases = (
        [axis for axis in tree.value["for_each"].value.values() if axis.is_block] if "for_each" in tree.value else []
    )
    for block in [*cases, *(tree.value[key] for key in ("only_for",) if key in tree.value)]:
        for case in block.value.values():
            yield from _stated(case)


def _replaced(over: Located, key: str) -> bool:
    """Whether `over` has a value of its own there; a block is merged."""
    return _has(over, key) and not over.at(*key.split(".")).is_block


def _has(tree: Located, dotted: str) -> bool:
    return dotted in _matching(tree, dotted.split("."))


def _matching(tree: Located, keys: list[str], way: str = "") -> Iterator[str]:
    """The dotted keys that exist in the tree and match, where `*` stands for every name."""
    if not keys:
        yield way
        return
    first, *rest = keys
    for name in tree.value if tree.is_block else ():
        if first in ("*", name):
            yield from _matching(tree.value[name], rest, f"{way}.{name}".lstrip("."))
