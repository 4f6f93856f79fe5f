"""Checks of claims and headlines against experiments, code and published numbers, before any job starts.

A name that is not there would only show after hours of running, as a claim that is not tested. Settings, algorithms
and experiments are those of the paper scale. Metrics are made by code: a metric's name must stand in the code behind
the experiment's runs or in the study's measures: as a text, as two that are joined (`"chosen_" + name`), or as an
f-string that can give it.
"""

import ast
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.core.study import Study
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.claim_files import Claims
from fedrepro.workflow.code_inputs import files_behind, path_of, training_files

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def check_claims(claims: Claims, study: Study, experiments: Mapping[str, Experiment], path: Path) -> None:
    """Raise a UserError for the first name that is not there. `experiments`: by id, at paper scale."""
    own = {e.name: e for e in experiments.values() if e.study == study.name}
    published = _published(study)
    for claim in claims.claims.values():
        for way, spec in {"": claim.spec, **claim.readings}.items():
            said = f"{path}: {claim.id}" + (f" ({way})" if way else "")
            lenders = spec.get("borrow", {})
            for key, quantity in _quantities(spec):
                lent = [lenders.get(key, lenders["experiment"])] if lenders else []
                for experiment in [quantity["experiment"], *lent]:
                    _check_quantity({**quantity, "experiment": experiment}, own, f"{said}.{key}")
                _check_needs(spec, own[quantity["experiment"]], said)
            for key, id in _printed(spec):
                _check_known(id, published, f"{said}.{key}", f"number in {study.name}/published.csv")
    _check_headlines(study, claims)


def _check_quantity(quantity: Mapping[str, Any], own: Mapping[str, Experiment], said: str) -> None:
    _check_known(name := quantity["experiment"], own, f"{said}.experiment", "experiment")
    arms = _arms(own[name])
    _check_known(arm := quantity["algorithm"], arms, f"{said}.algorithm", f"algorithm of {name}")
    algorithm, settings = arms[arm]
    setting, along = quantity.get("setting", "all"), quantity.get("along", "round")
    if setting != "all":
        pairs = set(setting.split(","))
        if setting not in settings and not any(pairs <= set(other.split(",")) for other in settings):
            raise UserError(f"{said}.setting: '{setting}' is no setting of {name}{nearest(setting, settings)}")
    keys = {"round", *(key for grid in settings.values() for key in grid)}
    _check_known(along, keys, f"{said}.along", f"key of a grid of {name}")
    metric = quantity["metric"]
    names, patterns = metrics_behind(own[name], algorithm)
    joined = any(text.endswith("_") and metric.removeprefix(text) in names for text in names if metric.startswith(text))
    if metric not in names and not joined and not any(pattern.fullmatch(metric) for pattern in patterns):
        raise UserError(f"{said}.metric: '{metric}' is made by no code behind {name}{_did_you_mean(metric, names)}")


_Arms = dict[str, tuple[str, dict[str, dict[str, Any]]]]


def _arms(experiment: Experiment) -> _Arms:
    """What a claim may call an algorithm → (the algorithm, its settings with their points of the grid). Measures may
    give the rows of a variant the variant's name, and the point as their setting."""
    found: _Arms = {}
    for algorithm in experiment.spec["algorithms"]:
        origins = experiment.origins(algorithm)
        found[algorithm] = algorithm, {name: of["grid"] for name, of in origins.items()}
        for name, of in origins.items():
            if of["variant"]:
                point = name.removeprefix(of["variant"]).removeprefix(",")
                found.setdefault(of["variant"], (algorithm, {}))[1][point] = of["grid"]
    return found


def _check_needs(spec: Mapping[str, Any], experiment: Experiment, said: str) -> None:
    for dotted in needs if isinstance(needs := spec.get("needs", {}), dict) else ():
        block: Any = experiment.spec
        for part in dotted.split("."):
            _check_known(part, block if isinstance(block, dict) else (), f"{said}.needs.{dotted}", "setting")
            block = block[part]


def _check_headlines(study: Study, claims: Claims) -> None:
    path = study.folder / "study.yaml"
    for headline in study.headlines.values():
        said = f"{path}: headlines.{headline.id}"
        for pattern in headline.claims:
            found = [c for c in claims.claims.values() if fnmatchcase(c.id, pattern)]
            if not found:
                raise UserError(f"{said}.claims: '{pattern}' fits no claim{nearest(pattern, claims.claims)}")
            for claim in found:
                if claim.spec["origin"] != "paper":
                    raise UserError(f"{said}.claims: '{claim.id}' is of origin {claim.spec['origin']}, not paper")
        if headline.decisive:
            _check_known(headline.decisive, claims.claims, f"{said}.rule.decisive", "claim")


def _check_known(name: str, known: Iterable[str], said: str, what: str) -> None:
    known = list(known)
    if name not in known:
        raise UserError(f"{said}: there is no {what} '{name}'{nearest(name, known)}")


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest name; no list, which would be all texts of the code."""
    hint = nearest(name, known)
    return hint if hint.startswith("; did you mean") else ""


def _quantities(spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, quantity) of all quantities of a claim."""
    blocks = {key: spec[key] for key in ("ours", "better", "worse", "at_most", "at_least") if key in spec}
    blocks |= {f"numbers.{name}": value for name, value in spec.get("numbers", {}).items()}
    yield from ((key, value) for key, value in blocks.items() if isinstance(value, dict))


def _printed(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(place, id) of all published numbers that a claim names."""
    keys = {key: spec[key] for key in ("published", "stated", "at_most", "at_least") if key in spec}
    keys |= {f"numbers.{name}": value for name, value in spec.get("numbers", {}).items()}
    yield from ((key, value) for key, value in keys.items() if isinstance(value, str))


def _published(study: Study) -> list[str]:
    path = study.file("published.csv")
    if path is None:
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [row["id"] for row in csv.DictReader(file)]


def metrics_behind(experiment: Experiment, algorithm: str) -> tuple[set[str], set[re.Pattern[str]]]:
    """Names that the code behind a run may give to metrics, and patterns of those that it makes up."""
    files = training_files(experiment.methods(algorithm), experiment.spec["model"]["name"])
    measures = parts.study_module(experiment.study, "measures")
    return _texts((*files, *(files_behind(measures) if measures else ())))


@cache
def _texts(files: tuple[str, ...]) -> tuple[set[str], set[re.Pattern[str]]]:
    found = [_texts_in(file) for file in files]
    return {"seconds"}.union(*(names for names, _ in found)), set().union(*(patterns for _, patterns in found))


@cache
def _texts_in(file: str) -> tuple[set[str], set[re.Pattern[str]]]:
    names: set[str] = set()
    patterns: set[re.Pattern[str]] = set()
    for node in ast.walk(ast.parse(path_of(file).read_text(encoding="utf-8"))):
        match node:
            case ast.Constant(value=str() as text) if _NAME.fullmatch(text):
                names.add(text)
            case ast.keyword(arg=str() as text) | ast.FunctionDef(name=text):
                names.add(text)
            case ast.JoinedStr(values=values):
                fixed = [str(v.value) if isinstance(v, ast.Constant) else "" for v in values]
                if any(map(_NAME.search, fixed)):
                    patterns.add(re.compile("".join(re.escape(text) or r"[a-z0-9_.]+" for text in fixed)))
    return names, patterns
