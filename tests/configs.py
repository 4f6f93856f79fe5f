"""A config folder with one small experiment; tests change single values of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedrepro.core.experiment import Experiment, resolve
from fedrepro.errors import UserError

EXPERIMENT: dict[str, Any] = {
    "title": "A line",
    "source": "§IV",
    "dataset": {"name": "dfl_line", "servers": 2, "clients": 2, "samples": 6},
    "partition": {"name": "by_client"},
    "model": {"name": "linear", "bias": True},
    "dtype": "float64",
    "local": {"steps": 5, "batch": "full"},
    "participation": {"clients": "all", "sampling": "uniform", "weights": "uniform"},
    "rounds": 40,
    "seeds": 6,
    "seeds_per_job": 4,
    "evaluate": {"every": 2, "clients": "last"},
    "algorithms": {"fedavg": {"lr": 0.1}, "fedpd": {"lr": 0.1, "gamma": 0.5, "start": "own"}},
    "scales": {"demo": {}, "smoke": {"rounds": 3, "seeds": 2}},
}
ARTEFACTS: dict[str, Any] = {
    "fig1": {"kind": "figure", "source": "Fig. 1", "title": "System", "caption": "All of it.", "experiments": []},
    "fig3b": {
        "kind": "figure",
        "source": "Fig. 3",
        "title": "Servers",
        "caption": "One seed.",
        "experiments": ["line"],
    },
}
STUDY: dict[str, Any] = {"title": "Toys", "authors": ["Ann"], "venue": "Toys 2020", "link": "https://example.org/toys"}
CONFIG: dict[str, Any] = {
    "scale": "smoke",
    "only": [],
    "data": "auto",
    "data_dir": None,
    "device": "auto",
    "strategy": "declared",
    "results": "results",
}


def changed(tree: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy of `tree` with values set by dotted key; `...` removes the key."""
    tree = copy.deepcopy(tree)
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        target = tree
        for key in parents:
            target = target[key]
        if value is ...:
            del target[last]
        else:
            target[last] = value
    return tree


def write_config(folder: Path, changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """Write the study `toy` with one experiment (`line`, with `changes`) and its artefacts; returns the config for
    Layout."""
    config = folder / "config"
    write_study(config, "toy")
    write_yaml(config / "studies" / "toy" / "experiments" / "line.yaml", changed(EXPERIMENT, changes or {}))
    write_yaml(config / "studies" / "toy" / "artefacts.yaml", ARTEFACTS)
    return {**CONFIG, "config": str(config)}


def write_study(config: Path, name: str) -> Path:
    """Declare a study; returns its folder."""
    write_yaml(config / "studies" / name / "study.yaml", STUDY)
    return config / "studies" / name


def write_yaml(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def experiment(changes: dict[str, Any] | None = None, scale: str = "smoke", name: str = "line") -> Experiment:
    """The small experiment, resolved; no file is written."""
    path = Path(f"config/studies/toy/experiments/{name}.yaml")
    return Experiment("toy", name, scale, path, resolve(changed(EXPERIMENT, changes or {}), scale, path))


def message(call: Callable[..., Any], *arguments: Any) -> str:
    """The text of the UserError that the call raises. It must be one line."""
    with pytest.raises(UserError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    return text
