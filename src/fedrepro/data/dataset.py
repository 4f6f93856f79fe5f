"""Data sets in memory, and their npz file. Training and rendering need no other module to read a prepared data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.files import atomic_file, check_own, sha256

KINDS = ("real", "standin", "synthetic")
SPLITS = ("train", "validation", "test")
Channels = float | tuple[float, ...]  # one number, or one per channel


@dataclass(frozen=True)
class Found:
    """Verified real files: name in the layout → path, and name → `md5:…` or `sha256:…`."""

    name: str
    layout: str
    complete: bool
    paths: Mapping[str, Path]
    checksums: Mapping[str, str]

    def __getitem__(self, file_name: str) -> Path:
        """The path of a file, by the last part of its name."""
        return next(path for name, path in self.paths.items() if name.endswith(file_name))

    def about(self) -> dict[str, Any]:
        return {"name": self.name, "layout": self.layout, "complete": self.complete, "files": dict(self.checksums)}


@dataclass(frozen=True)
class Split:
    """x [n, ...], y [n] or [n, outputs]; client [n] and group [n] (integers) where the data has them. Text windows are
    not copied: with `start` [n], x is one long sequence [N] and sample i is x[start[i] : start[i] + window]."""

    x: np.ndarray
    y: np.ndarray
    client: np.ndarray | None = None
    group: np.ndarray | None = None
    start: np.ndarray | None = None
    window: int = 0

    def __post_init__(self) -> None:
        for name in ("x" if self.start is None else "start", "client", "group"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.y):
                raise ValueError(f"{name} has {len(column)} rows, y has {len(self.y)}")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample's x."""
        return self.x.shape[1:] if self.start is None else (self.window,)

    def samples(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """x of some rows, [n, ...] or [n, window]."""
        if self.start is None:
            return self.x[rows]
        return np.lib.stride_tricks.sliding_window_view(self.x, self.window)[self.start[rows]]

    def take(self, rows: np.ndarray) -> Split:
        x = self.x if self.start is not None else self.x[rows]
        columns = {name: getattr(self, name) for name in ("client", "group", "start")}
        taken = {name: None if column is None else column[rows] for name, column in columns.items()}
        return Split(x, self.y[rows], **taken, window=self.window)


@dataclass(frozen=True)
class Dataset:
    """All samples of a data set. A model gets (x − offset) · factor, so that pixels stay bytes (see `pixels`)."""

    kind: str
    train: Split
    test: Split | None = None
    validation: Split | None = None
    outputs: int = 1  # number of classes or targets
    offset: np.ndarray | None = None
    factor: np.ndarray | None = None
    facts: Mapping[str, np.ndarray] = field(default_factory=dict)  # truth behind synthetic data; client and group names
    found: Found | None = field(default=None, compare=False)  # the real files

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind '{self.kind}' is none of {KINDS}")
        if (self.offset is None) != (self.factor is None):
            raise ValueError("offset and factor come together")

    def splits(self) -> dict[str, Split]:
        return {name: split for name in SPLITS if (split := getattr(self, name)) is not None}


def pixels(mean: Channels = 0.0, std: Channels = 1.0) -> dict[str, Any]:
    """offset and factor of byte images [channels, height, width]: (pixel/255 − mean) / std."""
    shift, scale = (np.atleast_1d(np.asarray(value, dtype=np.float64)).reshape(-1, 1, 1) for value in (mean, std))
    return {"offset": 255 * shift, "factor": 1 / (255 * scale)}


def save(path: Path, datasets: Mapping[int, Dataset]) -> None:
    """One npz file for the data sets of several seeds (key −1: one for all seeds)."""
    arrays: dict[str, np.ndarray] = {}
    for seed, data in datasets.items():
        parts: dict[str, Any] = {name: getattr(data, name) for name in ("kind", "outputs", "offset", "factor")}
        parts |= {f"facts/{name}": value for name, value in data.facts.items()}
        for name, split in data.splits().items():
            parts |= {f"{name}/{column.name}": getattr(split, column.name) for column in fields(split)}
        arrays |= {f"{seed}/{name}": np.asarray(value) for name, value in parts.items() if value is not None}
    with atomic_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the arrays for its option allow_pickle


def load(path: Path) -> dict[int, Dataset]:
    """The inverse of `save`. Nothing in the file is executed; a damaged file is a UserError that names it."""
    check_own(path, sha256(path))
    parts: dict[int, dict[str, Any]] = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            seed, *names = key.split("/")
            target = parts.setdefault(int(seed), {})
            for name in names[:-1]:
                target = target.setdefault(name, {})
            target[names[-1]] = archive[key]
    for part in parts.values():
        part |= {"kind": str(part["kind"]), "outputs": int(part["outputs"])}
        part |= {name: Split(**part[name] | {"window": int(part[name]["window"])}) for name in SPLITS if name in part}
    return {seed: Dataset(**part) for seed, part in parts.items()}
