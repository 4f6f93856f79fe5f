"""What every data set returns, what it is made from, and its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np

from fedrepro.data.catalogue import Found, find, present
from fedrepro.files import atomic_file, check_own, sha256

KINDS = ("real", "standin", "synthetic")
SPLITS = ("train", "validation", "test")
Fetch = Callable[[str, Sequence[Path]], None]


@dataclass(frozen=True)
class Split:
    """x [n, ...], y [n] or [n, outputs]; client [n] and group [n] (integers) where the data has them.

    Text is not copied window by window: with `start` [n] given, x is one long sequence [N] and sample i is
    x[start[i] : start[i] + window].
    """

    x: np.ndarray
    y: np.ndarray
    client: np.ndarray | None = None
    group: np.ndarray | None = None
    start: np.ndarray | None = None
    window: int = 0

    def __post_init__(self):
        for name in ("x" if self.start is None else "start", "client", "group"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.y):
                raise ValueError(f"{name} has {len(column)} rows, y has {len(self.y)}")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample's x."""
        return self.x.shape[1:] if self.start is None else (self.window,)

    def samples(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """x of some rows, as [n, ...] or [n, window]."""
        if self.start is None:
            return self.x[rows]
        return np.lib.stride_tricks.sliding_window_view(self.x, self.window)[self.start[rows]]

    def take(self, rows: np.ndarray) -> Split:
        """Some of the rows, with all that belongs to them."""
        x = self.x if self.start is not None else self.x[rows]
        columns = {name: getattr(self, name) for name in ("client", "group", "start")}
        taken = {name: None if column is None else column[rows] for name, column in columns.items()}
        return Split(x, self.y[rows], **taken, window=self.window)


@dataclass(frozen=True)
class Dataset:
    """All samples of a data set.

    outputs: number of classes, or of targets. offset, factor: a model is given (x − offset) · factor, so that pixels
    are kept as bytes (`pixels` makes both). facts: what is known of the truth behind synthetic data, or names of
    clients and groups. found: the real files it was read from.
    """

    kind: str
    train: Split
    test: Split | None = None
    validation: Split | None = None
    outputs: int = 1
    offset: np.ndarray | None = None
    factor: np.ndarray | None = None
    facts: Mapping[str, np.ndarray] = field(default_factory=dict)
    found: Found | None = field(default=None, compare=False)

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind '{self.kind}' is none of {KINDS}")
        if (self.offset is None) != (self.factor is None):
            raise ValueError("offset and factor come together")

    def splits(self) -> dict[str, Split]:
        """The splits that are there, by name."""
        return {name: split for name in SPLITS if (split := getattr(self, name)) is not None}


def pixels(mean: float | tuple[float, ...] = 0.0, std: float | tuple[float, ...] = 1.0) -> dict[str, np.ndarray]:
    """offset and factor of images [channels, height, width] kept as bytes: pixel/255, less mean, over std."""
    shape = (-1, 1, 1)
    mean, std = (np.atleast_1d(np.asarray(v, dtype=np.float64)).reshape(shape) for v in (mean, std))
    return {"offset": 255 * mean, "factor": 1 / (255 * std)}


@dataclass(frozen=True)
class Source:
    """What a data set is made from: a random stream, and where real files may be (the first folder that has them).

    fetch: given a data set's name and the folders, gets the files that mode `real` misses; without it nothing is
    downloaded.
    """

    rng: np.random.Generator
    mode: str = "auto"  # auto | real | standin
    folders: tuple[Path, ...] = ()
    fetch: Fetch | None = None

    def find(self, name: str) -> Found | None:
        """The verified real files of a data set of config/datasets.yaml; None where the stand-in is to be used."""
        if self.mode == "real" and self.fetch is not None and present(name, self.folders) is None:
            self.fetch(name, self.folders)
        return find(name, self.mode, self.folders)


@dataclass(frozen=True)
class Entry:
    """A registered data set. seeded: each seed has data of its own. size: parameters → (clients, or None where a
    splitting scheme makes them; all training samples), for the plan. files: its entry in config/datasets.yaml. reads:
    other files of the checkout that it reads."""

    load: Callable[..., Dataset]
    seeded: bool
    size: Callable[..., tuple[int | None, int]]
    files: str | None = None
    reads: tuple[str, ...] = ()


def save(path: Path, datasets: Mapping[int, Dataset]) -> None:
    """One npz file for the data sets of several seeds (key −1: one for all seeds)."""
    arrays: dict[str, np.ndarray] = {}
    for seed, data in datasets.items():
        for name in ("kind", "outputs", "offset", "factor"):
            if getattr(data, name) is not None:
                arrays[f"{seed}/{name}"] = np.asarray(getattr(data, name))
        arrays |= {f"{seed}/facts/{name}": np.asarray(value) for name, value in data.facts.items()}
        for name, split in data.splits().items():
            columns = {f.name: getattr(split, f.name) for f in fields(split)}
            arrays |= {f"{seed}/{name}/{k}": np.asarray(v) for k, v in columns.items() if v is not None}
    with atomic_file(path) as file:
        np.savez(file, **arrays)


def load(path: Path) -> dict[int, Dataset]:
    """The inverse of `save`; nothing in the file is ever executed, and a damaged one is an error by name."""
    check_own(path, sha256(path))
    parts: dict[int, dict] = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            seed, *names = key.split("/")
            target = parts.setdefault(int(seed), {})
            for name in names[:-1]:
                target = target.setdefault(name, {})
            target[names[-1]] = archive[key]
    return {
        seed: Dataset(
            kind=str(part["kind"]),
            outputs=int(part["outputs"]),
            offset=part.get("offset"),
            factor=part.get("factor"),
            facts=part.get("facts", {}),
            **{name: Split(**part[name] | {"window": int(part[name]["window"])}) for name in SPLITS if name in part},
        )
        for seed, part in parts.items()
    }
