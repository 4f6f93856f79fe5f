"""How a data set is made: the source that it draws or reads from, and the entry that declares it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import find, present
from fedrepro.data.dataset import Dataset, Found

Fetch = Callable[[str, Sequence[Path]], None]


@dataclass(frozen=True)
class Source:
    """A random stream, and the folders of real files (the first one that has them counts).

    fetch: given a data set's name and the folders, downloads the files that mode `real` misses; None: no downloads.
    """

    rng: np.random.Generator
    mode: str = "auto"  # auto | real | standin
    folders: tuple[Path, ...] = ()
    fetch: Fetch | None = None

    def find(self, name: str) -> Found | None:
        """The verified real files of a data set of config/datasets.yaml; None: use the stand-in."""
        if self.mode == "real" and self.fetch is not None and present(name, self.folders) is None:
            self.fetch(name, self.folders)
        return find(name, self.mode, self.folders)


@dataclass(frozen=True)
class Entry:
    """The declaration of a data set, `DATASET` in its module.

    seeded: every seed has its own data. size: parameters → (clients, or None where the partition makes them; number of
    training samples), for the plan. files: its entry in config/datasets.yaml. reads: other files of the checkout that
    it reads. example: small parameters for the contract tests.
    """

    load: Callable[..., Dataset]
    seeded: bool
    size: Callable[..., tuple[int | None, int]]
    files: str | None = None
    reads: tuple[str, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
