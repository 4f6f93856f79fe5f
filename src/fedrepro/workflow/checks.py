"""Checks of the experiments against the code: every name known, every hyper-parameter known and valid.

They need the classes and so torch; a pass is remembered for the exact config and code, which keeps an idle run short.
"""

import contextlib
import dataclasses
import hashlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment, experiments_of
from fedrepro.core.schemas import schema, validate
from fedrepro.core.study import Study
from fedrepro.data.catalogue import CATALOGUE
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import sha256, sha256_of, write_atomically

_REMEMBERED = Path(".snakemake") / "fedrepro"
LARGEST_SIZE: int = schema("experiment")["$defs"]["size"]["maximum"]


def check_once(experiments: Iterable[Experiment], studies: Iterable[Study] = ()) -> None:
    """Check experiments, claims, headlines and the catalogue of data, unless these passed before with the same code."""
    experiments, studies = list(experiments), list(studies)
    code = hashlib.sha256(b"".join(path.read_bytes() for path in parts.sources())).hexdigest()
    names = ("study.yaml", "claims.yaml", "published.csv")
    files = [(s.name, name, sha256(path)) for s in studies for name in names if (path := s.file(name))]
    checked = [[(e.id, e.spec) for e in experiments], files, sha256(CATALOGUE)]  # no path: a checkout may move
    mark = _REMEMBERED / f"checked-{sha256_of([code, checked])[:32]}"
    if mark.exists():
        return
    from fedrepro.data.fetch import check_catalogue  # here: with nothing to check, nothing of it is needed
    from fedrepro.workflow.claim_checks import check_claims

    check_catalogue(CATALOGUE)
    check_all(experiments)
    for study in studies:
        if path := study.file("claims.yaml"):
            check_claims(load_claims(path), study, experiments_of(study, "paper"), path)
    with contextlib.suppress(OSError):  # a read-only folder costs two seconds per start
        write_atomically(mark, "")


def check_all(experiments: Iterable[Experiment]) -> None:
    """Raise a one-line UserError for the first unknown name or invalid value."""
    from fedrepro.data.preparation import INSIDE

    for e in experiments:
        _check_named(e, "dataset", e.spec["dataset"], lambda name: parts.dataset(name).load, skip=1)
        partition = dict(e.spec["partition"])
        inside = partition.pop("inside", None)
        _check_named(e, "partition", partition, parts.partition, skip=2)
        if inside is not None:
            if (name := inside["name"]) not in INSIDE:
                raise UserError(f"{e.path}: partition.inside.name: '{name}' is unknown{nearest(name, INSIDE)}")
            _check_arguments(e, "partition.inside", inside, INSIDE[name], skip=2)
        _check_named(e, "model", e.spec["model"], parts.model, skip=2)
        for algorithm in e.spec["algorithms"]:
            where = f"algorithms.{algorithm}"
            for method in e.methods(algorithm):
                _check_usable(e, f"{where}.method" if method != algorithm else where, "algorithms", method)
            for setting, run in e.runs(algorithm).items():
                make: Any = parts.algorithm(run.method)  # a class: mypy takes its hash for that of its objects
                validate(run.hyper, parameter_schema(make, skip=0), e.path, where)
                try:
                    make.from_config(run.hyper)
                except UserError as error:
                    raise UserError(f"{e.path}: {where}{f' ({setting})' if setting else ''}: {error}") from None


def _check_usable(e: Experiment, where: str, kind: str, name: str) -> None:
    """A part must be shared or the study's own."""
    known = parts.usable_by(e.study, kind)
    if name not in known:
        raise UserError(f"{e.path}: {where}: {kind[:-1]} '{name}' is unknown{nearest(name, known)}")


def _check_named(
    e: Experiment, section: str, spec: dict[str, Any], load: Callable[[str], Callable[..., Any]], skip: int
) -> None:
    _check_usable(e, f"{section}.name", f"{section}s", spec["name"])
    _check_arguments(e, section, spec, load(spec["name"]), skip)


def _check_arguments(e: Experiment, section: str, spec: dict[str, Any], make: Callable[..., Any], skip: int) -> None:
    given = {key: value for key, value in spec.items() if key != "name"}
    validate(given, parameter_schema(make, skip, smallest=0), e.path, section)


@cache
def parameter_schema(make: Callable[..., Any], skip: int, smallest: int | None = None) -> dict[str, Any]:
    """A closed schema of the parameters of a function or dataclass after the first `skip`. No integer may be below
    `smallest` or above LARGEST_SIZE then (in data sets, partitions and models they are sizes)."""
    target: Any = make.__init__ if inspect.isclass(make) and not dataclasses.is_dataclass(make) else make
    hints = typing.get_type_hints(target)
    parameters = list(inspect.signature(make).parameters.values())[skip:]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [p.name for p in parameters if p.default is p.empty],
        "properties": {p.name: _type_schema(hints[p.name], smallest) for p in parameters},
    }


def _type_schema(hint: Any, smallest: int | None = None) -> dict[str, Any]:
    simple = {float: "number", int: "integer", str: "string", bool: "boolean", type(None): "null"}
    if hint is int and smallest is not None:
        return {"type": "integer", "minimum": smallest, "maximum": LARGEST_SIZE}
    if hint in simple:
        return {"type": simple[hint]}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type_schema(a, smallest) for a in arguments]}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": True if arguments[1] is Any else _type_schema(arguments[1])}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": _type_schema(arguments[0], smallest)}
    raise TypeError(f"hyper-parameters of type {hint} cannot be given in a config file")
