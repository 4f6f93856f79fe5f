"""Experiments as data: read config/, apply a scale, check every name and value, list the jobs.

Nothing here imports torch, so that the workflow starts at once. Names and values of hyper-parameters, which need the
classes, are checked by `fedrepro.workflow.checks`, once per change of config or code.
"""

import copy
import itertools
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fedrepro.core import open_settings
from fedrepro.core.expansion import Expanded, Located, expand
from fedrepro.core.schemas import schema, validate
from fedrepro.core.study import Study, check_name, load_studies, study_of
from fedrepro.errors import UserError, nearest
from fedrepro.files import read_yaml, sha256_of

SCALES = ("smoke", "demo", "workstation", "paper")  # by size
MOST_SETTINGS = 10_000  # of one experiment: those of an algorithm are trained side by side in memory


class Setting(NamedTuple):
    """The variant (may be empty), the method, the point of the grid, and all hyper-parameters."""

    variant: str
    method: str
    grid: dict[str, Any]
    hyper: dict[str, Any]


class Block(NamedTuple):
    """A variant: its method, what is the same in all its settings, and its grid."""

    method: str
    hyper: dict[str, Any]
    axes: dict[str, list[Any]]


def _blocks(algorithm: str, arm: Mapping[str, Any]) -> dict[str, Block]:
    """Variant (may be empty) → block of `algorithms.<algorithm>`. A variant may have its own method and grid."""
    own = dict(arm)
    grid, variants = own.pop("grid", {}), own.pop("variants", {"": {}})
    found = {}
    for variant, changes in variants.items():
        hyper = {"method": algorithm, **own, **changes}
        method, axes = hyper.pop("method"), {**grid, **hyper.pop("grid", {})}
        found[variant] = Block(method, hyper, axes)
    return found


def settings_of(algorithm: str, arm: Mapping[str, Any]) -> dict[str, Setting]:
    """Name → setting of `algorithms.<algorithm>`: all share one job."""
    found = {}
    for variant, (method, hyper, axes) in _blocks(algorithm, arm).items():
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values, strict=True))
            name = ",".join(filter(None, [variant, *(f"{k}={v}" for k, v in point.items())]))
            found[name] = Setting(variant, method, point, {**hyper, **point})
    return found


@dataclass(frozen=True)
class Experiment:
    """One experiment at one scale."""

    study: str
    name: str
    scale: str
    path: Path
    spec: dict[str, Any] = field(repr=False)
    files: tuple[Path, ...] = ()  # all that it is read from

    @property
    def id(self) -> str:
        return f"{self.study}/{self.name}"

    @property
    def dataset_id(self) -> str:
        """Experiments with the same data have the same id and share one file."""
        return _named(self.spec["dataset"])

    @property
    def federation_id(self) -> str:
        return f"{self.dataset_id}/{_named(self.spec['partition'])}"

    def shards(self) -> list[str]:
        """The seeds, cut into jobs: `0-9`, `10-19`, …"""
        total, size = self.spec["seeds"], self.spec["seeds_per_job"]
        return [f"{a}-{min(a + size, total) - 1}" for a in range(0, total, size)]

    def jobs(self) -> list[tuple[str, str]]:
        """(algorithm, shard) of every training job."""
        return [(algorithm, shard) for algorithm in self.spec["algorithms"] for shard in self.shards()]

    def methods(self, algorithm: str) -> list[str]:
        """Names of the methods that an algorithm of this experiment runs; usually one."""
        return sorted({setting.method for setting in self.runs(algorithm).values()})

    def method_of(self, algorithm: str, setting: str) -> str:
        return self.runs(algorithm)[setting].method

    def settings(self, algorithm: str) -> dict[str, dict[str, Any]]:
        """Name of each setting → its hyper-parameters."""
        return {name: setting.hyper for name, setting in self.runs(algorithm).items()}

    def origins(self, algorithm: str) -> dict[str, dict[str, Any]]:
        """Name of each setting → its `variant`, `method` and `grid`, for the manifest of a run."""
        runs = self.runs(algorithm)
        return {name: {"variant": s.variant, "method": s.method, "grid": s.grid} for name, s in runs.items()}

    def runs(self, algorithm: str) -> dict[str, Setting]:
        """Name → setting of an algorithm of this experiment."""
        return settings_of(algorithm, self.spec["algorithms"][algorithm])

    def job_sha256(self, algorithm: str) -> str:
        """Hash of all that a training job depends on but code, data and shard: more seeds keep finished shards."""
        apart = ("algorithms", "title", "source", "seeds", "seeds_per_job", "divergence")
        spec = {k: v for k, v in self.spec.items() if k not in apart}
        runs = {name: (setting.method, setting.hyper) for name, setting in self.runs(algorithm).items()}
        return sha256_of([self.id, spec, algorithm, runs])


def load_experiments(config: Path, scale: str, study: str | None = None) -> dict[str, Experiment]:
    """Every experiment of all studies, or of one, at the given scale, by id."""
    _check_scale(scale)
    studies = [study_of(config, study)] if study else sorted(load_studies(config).values(), key=lambda s: s.name)
    return {id: e for s in studies for id, e in experiments_of(s, scale).items()}


def experiments_of(study: Study, scale: str) -> dict[str, Experiment]:
    """Every experiment of a study at the given scale, by id."""
    return {f"{study.name}/{e.name}": _loaded(study.name, e, scale) for e in expanded_in(study).values()}


def load_experiment(config: Path, id: str, scale: str) -> Experiment:
    """One experiment, <study>/<name>, at the given scale."""
    _check_scale(scale)
    return _loaded(id.split("/")[0], find_experiment(config, id), scale)


def find_experiment(config: Path, id: str) -> Expanded:
    """One experiment, <study>/<name>, before a scale is applied."""
    study, _, name = id.partition("/")
    found = expanded(config, study)
    if name not in found:
        raise UserError(f"experiment '{id}' is unknown{nearest(name, found)}")
    return found[name]


def expanded(config: Path, study: str) -> dict[str, Expanded]:
    """The experiments of a study by name, before a scale is applied."""
    return expanded_in(study_of(config, study))


def expanded_in(study: Study) -> dict[str, Expanded]:
    """The experiments of a study by name, before a scale is applied."""
    files = sorted((study.folder / "experiments").glob("*.yaml"))
    for path in files:
        check_name(path, path.stem.removeprefix("_"))
    return expand(files)


def _loaded(study: str, found: Expanded, scale: str) -> Experiment:
    raw = found.tree.plain()
    way: list[object] = []  # to the wrong value

    def remember(keys: list[Any]) -> list[Any]:
        way.extend(keys)
        return keys

    check_name(found.path, found.name)
    try:
        validate(raw, "experiment", found.path, place=remember)
    except UserError as error:
        raise UserError(f"{found.said_in(*way)}: {str(error).removeprefix(f'{found.path}: ')}") from None
    for algorithm in raw["algorithms"]:
        check_name(found.path, algorithm)
    spec = resolve(raw, scale, found.said_in("scales"))
    if raw["scales"].get(scale):
        validate(spec, _resolved_schema(), f"{found.said_in('scales')} (at scale {scale})")
    count_settings(spec, found.said_in("algorithms"))
    return Experiment(study, found.name, scale, found.path, spec, found.files)


def _check_scale(scale: str) -> None:
    if scale not in SCALES:
        raise UserError(f"scale: '{scale}' is unknown{nearest(scale, SCALES)}")


def resolve(raw: dict[str, Any], scale: str, path: Path | str) -> dict[str, Any]:
    """The file's settings with the scale's overrides. A scale changes existing values; it adds none."""
    spec = copy.deepcopy({k: v for k, v in raw.items() if k not in ("scales", open_settings.SECTION)})
    for keys, value in _leaves(raw.get("scales", {}).get(scale, {})):
        target = spec
        for i, key in enumerate(keys):
            if not isinstance(target, dict) or key not in target:
                where = ".".join(["scales", scale, *keys[: i + 1]])
                valid = target if isinstance(target, dict) else ()
                raise UserError(f"{path}: {where} overrides a key that is not there{nearest(key, valid)}")
            if i == len(keys) - 1 and value != {}:
                target[key] = value
            target = target[key]
    spec["seeds_per_job"] = min(spec["seeds_per_job"], spec["seeds"])
    return spec


@cache
def _resolved_schema() -> dict[str, Any]:
    """Of an experiment at one scale."""
    whole = schema("experiment")
    return {**whole, "required": [key for key in whole["required"] if key != "scales"]}


def count_settings(spec: Mapping[str, Any], path: Path | str) -> None:
    """UserError if there are more than MOST_SETTINGS settings, in all variants of all algorithms; none is made."""
    total = 0
    for name, arm in spec["algorithms"].items():
        total += sum(math.prod(map(len, block.axes.values())) for block in _blocks(name, arm).values())
        if total > MOST_SETTINGS:
            raise UserError(f"{path}: algorithms.{name}: {total} settings so far, at most {MOST_SETTINGS} are possible")


def scaled(tree: Located, scale: str) -> Located:
    """`resolve` for located values."""
    apart = ("scales", open_settings.SECTION)
    spec, scales = tree.only(lambda key: key not in apart), tree.value["scales"].value
    spec = spec.merged(scales[scale]) if scale in scales else spec
    fewest = min(spec.value["seeds_per_job"], spec.value["seeds"], key=lambda number: number.value)
    return spec._replace(value={**spec.value, "seeds_per_job": fewest})


def load_artefacts(
    config: Path, experiments: dict[str, Experiment], studies: Iterable[Study] | None = None
) -> dict[str, dict[str, Any]]:
    """Artefact id (<study>/<name>) → its declaration, with the experiments it draws on checked; of all studies if none
    are given."""
    artefacts = {}
    asked = load_studies(config).values() if studies is None else studies
    for study, declared in sorted({s.name: s for s in asked}.items()):
        path = declared.file("artefacts.yaml")
        if path is None:
            continue
        raw = read_yaml(path)
        validate(raw, "artefacts", path)
        known = {e.name for e in experiments.values() if e.study == study}
        for name, spec in raw.items():
            check_name(path, name, "[a-z][A-Za-z0-9_]*")
            for needed in [*spec["experiments"], *spec.get("data", [])]:
                if needed not in known:
                    raise UserError(f"{path}: {name}.experiments: '{needed}' is unknown{nearest(needed, known)}")
            artefacts[f"{study}/{name}"] = {**spec, "study": study, "id": f"{study}/{name}"}
    return artefacts


def select(only: list[str], artefacts: dict[str, Any], declared: Container[str] = ()) -> list[str]:
    """Ids of the artefacts that `only` lists, as studies or as <study>/<name>; all if it is empty. `declared` are all
    studies, including those without artefacts."""
    studies: dict[str, list[str]] = {study: [] for study in sorted({a.split("/")[0] for a in artefacts})}
    for artefact in artefacts:
        studies[artefact.split("/")[0]].append(artefact)
    chosen: dict[str, None] = {}
    for name in dict.fromkeys(only or studies):
        if name in artefacts:
            chosen[name] = None
        elif name in studies:
            chosen |= dict.fromkeys(studies[name])
        elif name in declared:
            raise UserError(f"only: study '{name}' has no artefacts yet{nearest(name, studies)}")
        else:
            raise UserError(f"only: '{name}' is neither a study nor an artefact{nearest(name, [*studies, *artefacts])}")
    return list(chosen)


def _named(spec: dict[str, Any]) -> str:
    return f"{spec['name']}-{sha256_of({k: v for k, v in spec.items() if k != 'name'})[:8]}"


def _leaves(tree: dict[str, Any], keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*keys, key))
        else:
            yield (*keys, key), value
