"""Other values of the settings that a paper leaves open, and the experiments that have them.

An alternative changes one assumption (core/open_settings.py) in every experiment that shares it. The experiment that
has it is called <experiment>__<what>_<hash> and is written as a config folder of its own, so that the workflow runs it
like any other. If only algorithms change, it has only these: the others' runs are those of the original.
"""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fedrepro.core.expansion import Expanded, Place
from fedrepro.core.open_settings import SECTION
from fedrepro.core.study import Study
from fedrepro.errors import UserError
from fedrepro.files import sha256_of, write_atomically

Change = Mapping[str, Any]  # dotted key → value


@dataclass(frozen=True)
class Assumption:
    """A setting that the paper leaves open, as written once: its key (perhaps with `*`), our value, why, why there is
    no other value, and the experiments that have it with the concrete keys."""

    key: str
    value: str
    why: str
    because: str
    also: tuple[Any, ...]
    keys: Mapping[str, tuple[str, ...]]  # experiment → dotted keys

    def alternatives(self) -> Iterator[Alternative]:
        for other in self.also:
            changes = {
                e: other if isinstance(other, dict) else dict.fromkeys(keys, other) for e, keys in self.keys.items()
            }
            yield Alternative((self.key,), other, changes)


@dataclass(frozen=True)
class Alternative:
    """Changes of some experiments, by name. `other` is the value, or a list of the values of several assumptions."""

    keys: tuple[str, ...]
    other: Any
    changes: Mapping[str, Change]

    def with_(self, second: Alternative) -> Alternative:
        """Both at once; where they change the same setting, the second one's value."""
        names = dict.fromkeys([*self.changes, *second.changes])
        both = {e: {**self.changes.get(e, {}), **second.changes.get(e, {})} for e in names}
        return Alternative(self.keys + second.keys, [self.other, second.other], both)


def assumptions_of(experiments: Mapping[str, Expanded], used: Mapping[str, Iterable[str]]) -> list[Assumption]:
    """The assumptions of some experiments, by name. `used`: experiment → names of the algorithms and variants on which
    something depends; settings of other algorithms are left out."""
    found: dict[tuple[Place, str], dict[str, list[str]]] = {}
    texts: dict[tuple[Place, str], dict[str, Any]] = {}
    for name, e in experiments.items():
        for key, about in e.tree.value[SECTION].value.items() if SECTION in e.tree.value else ():
            if _concerns(key.split("."), set(used[name])):
                entry = about.places[0], e.tree.at(*key.split(".")).written()
                found.setdefault(entry, {}).setdefault(name, []).append(key)
                texts[entry] = about.plain()
    return [
        Assumption(
            place.key,
            value,
            about["why"],
            about.get("because", ""),
            tuple(about.get("also", ())),
            {name: tuple(keys) for name, keys in found[place, value].items()},
        )
        for (place, value), about in texts.items()
    ]


def _concerns(keys: list[str], used: set[str]) -> bool:
    """Whether a setting belongs to a used algorithm or to all. A variant that is used by its name stands for its
    algorithm."""
    if keys[0] != "algorithms" or len(keys) == 1:
        return True
    if len(keys) > 3 and keys[2] == "variants":
        return keys[3] in used
    return keys[1] in used


def derived_name(experiment: str, change: Change) -> str:
    words = "_".join(f"{key.rpartition('.')[2]}_{value}" for key, value in change.items())
    slug = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:40].strip("_")
    return f"{experiment}__{slug}_{sha256_of(dict(change))[:6]}"


def held_by_scale(raw: Mapping[str, Any], change: Change, scale: str) -> str:
    """A key of the change that the scale itself sets, where the value would mean something else; empty if none."""
    own = set(_dotted(raw.get("scales", {}).get(scale, {})))
    return next((key for key in change if any(f"{o}.".startswith(f"{key}.") for o in own)), "")


def _dotted(tree: Mapping[str, Any], way: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield from _dotted(value, f"{way}{key}.") if isinstance(value, dict) else [f"{way}{key}"]


def varied(raw: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """An expanded experiment with the change, without assumptions."""
    spec = copy.deepcopy({key: value for key, value in raw.items() if key != SECTION})
    for dotted, value in change.items():
        *parents, last = dotted.split(".")
        target = spec
        for key in parents:
            if not isinstance(target.get(key), dict):
                raise UserError(f"also: '{dotted}' is no setting of this experiment")
            target = target[key]
        target[last] = value
    spec["title"] += " (" + ", ".join(f"{key} = {value}" for key, value in change.items()) + ")"
    return spec


def touched(spec: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Of an experiment with the change, only the algorithms that it touches; all if it touches anything else."""
    ways = [dotted.split(".") for dotted in change]
    if not all(way[0] == "algorithms" and len(way) > 2 for way in ways):
        return dict(spec)
    kept, found = {way[1] for way in ways}, copy.deepcopy(dict(spec))
    for block in (found, *found["scales"].values()):
        if "algorithms" in block:
            block["algorithms"] = {name: arm for name, arm in block["algorithms"].items() if name in kept}
    return found


def write_variant(folder: Path, study: Study, name: str, spec: Mapping[str, Any]) -> None:
    """A config folder with one experiment."""
    home = folder / "studies" / study.name
    (home / "experiments").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(study.folder / "study.yaml", home / "study.yaml")
    write_atomically(home / "experiments" / f"{name}.yaml", yaml.safe_dump(dict(spec), sort_keys=False))
