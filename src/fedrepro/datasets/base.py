"""What every data set returns, and its file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fedrepro.files import write_atomically

KINDS = ("real", "standin", "synthetic")
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """x [n, ...], y [n] or [n, outputs]; client [n] and group [n] (integers) where the data has them."""

    x: np.ndarray
    y: np.ndarray
    client: np.ndarray | None = None
    group: np.ndarray | None = None

    def __post_init__(self):
        for name in ("y", "client", "group"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.x):
                raise ValueError(f"{name} has {len(column)} rows, x has {len(self.x)}")


@dataclass(frozen=True)
class Dataset:
    """All samples of a data set. `outputs` is the number of classes, or of targets; `facts` what is known of the
    truth behind synthetic data."""

    kind: str
    train: Split
    test: Split | None = None
    validation: Split | None = None
    outputs: int = 1
    facts: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind '{self.kind}' is none of {KINDS}")


@dataclass(frozen=True)
class Source:
    """What a data set is made from: a random stream, and where real files may be."""

    rng: np.random.Generator
    mode: str = "auto"  # auto | real | standin
    data_dir: Path | None = None


@dataclass(frozen=True)
class Entry:
    """A registered data set. seeded: each seed has data of its own. size: parameters → (clients, samples a client),
    for the plan."""

    load: Callable[..., Dataset]
    seeded: bool
    size: Callable[..., tuple[int, int]]


def save(path: Path, datasets: Mapping[int, Dataset]) -> None:
    """One npz file for the data sets of several seeds (key −1: one for all seeds)."""
    arrays: dict[str, np.ndarray] = {}
    for seed, data in datasets.items():
        arrays[f"{seed}/kind"] = np.array(data.kind)
        arrays[f"{seed}/outputs"] = np.array(data.outputs)
        arrays |= {f"{seed}/facts/{name}": np.asarray(value) for name, value in data.facts.items()}
        for name in SPLITS:
            split = getattr(data, name)
            if split is not None:
                columns = {k: v for k, v in vars(split).items() if v is not None}
                arrays |= {f"{seed}/{name}/{k}": v for k, v in columns.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


def load(path: Path) -> dict[int, Dataset]:
    """The inverse of `save`; nothing in the file is ever executed."""
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
            facts=part.get("facts", {}),
            **{name: Split(**part[name]) for name in SPLITS if name in part},
        )
        for seed, part in parts.items()
    }
