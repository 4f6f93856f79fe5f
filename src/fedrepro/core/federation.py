"""Who holds what, and the mini-batches of a client.

A data set exists once (`Samples`: all rows, shared by every seed); a federation only lists the rows of each client.
Mini-batches are row numbers, drawn outside of the algorithm: one client, many clients under `vmap`, and many seeds all
read the same memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.params import inside_transform

READ_AHEAD = 32  # steps
Rng = np.random.Generator


class Samples(NamedTuple):
    """x [N, ...] and y [N, ...], on the device of the run. With a `factor`, x are bytes and a model gets
    (x − offset) · factor: of a large set of images only the rows read are scaled."""

    x: Tensor
    y: Tensor
    offset: Tensor | None = None
    factor: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Of a model's inputs."""
        return self.x.dtype if self.factor is None else self.factor.dtype

    def inputs(self, x: Tensor) -> Tensor:
        """A model's inputs for a part of x."""
        if self.offset is None or self.factor is None:
            return x
        return x.to(self.dtype).sub_(self.offset).mul_(self.factor)

    def rows(self, index: Tensor) -> Samples:
        """The rows of an index of any shape: [T, B] → x [T, B, ...], y [T, B, ...]."""
        x, y = (part.index_select(0, index.reshape(-1)).reshape(*index.shape, *part.shape[1:]) for part in self[:2])
        return Samples(self.inputs(x), y)

    def on_device(self, index: np.ndarray) -> Tensor:
        """Row numbers or marks of padding, drawn on the host, where the samples are: one copy for all steps."""
        return torch.from_numpy(index).to(self.x.device)


@dataclass(frozen=True)
class Holdings:
    """Client k holds rows[offsets[k]:offsets[k+1]] of `samples`."""

    samples: Samples
    rows: np.ndarray  # [n] int64
    offsets: np.ndarray  # [K+1] int64

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def of(self, client: int) -> np.ndarray:
        return self.rows[self.offsets[client] : self.offsets[client + 1]]

    def full_batch(self, client: int) -> Batch:
        rows = self.samples.on_device(self.of(client))
        return Batch(self.samples.inputs(self.samples.x[rows]), self.samples.y[rows])

    def class_counts(self) -> Tensor:
        """Samples per client and class: [K, classes], up to the largest label of all samples."""
        y = self.samples.y.to("cpu")
        classes = int(y.max()) + 1
        labels = (y[self.of(k)] for k in range(len(self)))
        return torch.stack([torch.bincount(y, minlength=classes) for y in labels])

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Federation:
    """One seed's clients. A missing split is None; `groups` names each client's group."""

    train: Holdings
    validation: Holdings | None = None
    test: Holdings | None = None
    groups: tuple[str, ...] = ()
    facts: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.train)

    def splits(self) -> Iterator[tuple[str, Holdings]]:
        named = (("train", self.train), ("validation", self.validation), ("test", self.test))
        return ((name, holdings) for name, holdings in named if holdings is not None and len(holdings.rows))


class Batch(NamedTuple):
    """x [B, ...], y [B, ...]; weight [B] is 0 for padding (None: all count). A mean divides the sum by the number of
    samples that count or, if given, by `size`: Poisson sampling divides by the expected size."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    size: float | None = None

    def shares(self) -> Tensor | float:
        """Each sample's share in the mean: [B], or one number for all."""
        if self.weight is None:
            return 1 / len(self.y)
        return self.weight / (self.weight.sum() if self.size is None else self.size)


@dataclass(frozen=True)
class Batches:
    """One client's batches of one round: iterating gives `steps` of them.

    index [T, B] are rows of `samples`, weight [T, B] marks padding in a short last batch (None: no padding). A full
    batch is kept once, as `whole` (the batch or the model's summary of it), and repeated. `ready` are the rows of all
    steps, x [T, B, ...] and y [T, B, ...], if read beforehand. `noise` [T, P] are standard normal numbers for noisy
    methods (`Algorithm.noisy`). `exchange` counts the exchanges with the server within the round, all on the same
    batches.
    """

    round: int
    steps: int
    steps_per_epoch: int = 1
    samples: Samples | None = None
    index: Tensor | None = None
    weight: Tensor | None = None
    whole: object | None = None
    ready: Samples | None = None
    size: float | None = None
    noise: Tensor | None = None
    exchange: int = 0

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        if self.whole is not None:
            yield from itertools.repeat(self.whole, self.steps)
            return
        # Reading the rows of many steps at once is several times faster; under vmap there are many rows already.
        ahead = self.steps if self.ready else 1 if inside_transform() else READ_AHEAD
        for start in range(0, self.steps, ahead):
            stop = min(start + ahead, self.steps)
            if (read := self.ready) is None:
                assert self.samples is not None
                assert self.index is not None
                read = self.samples.rows(self.index[start:stop])
            for t, x, y in zip(range(start, stop), read.x.unbind(0), read.y.unbind(0), strict=False):
                yield Batch(x, y, None if self.weight is None else self.weight[t], self.size)

    def epoch(self, t: int) -> int:
        """The pass over the client's data in this round that step t belongs to."""
        return t // self.steps_per_epoch

    @property
    def epochs(self) -> int:
        """Passes over the client's data in the round; the last may be cut short."""
        return -(-self.steps // self.steps_per_epoch)

    def head(self, steps: int) -> Batches:
        index, weight, noise = (None if v is None else v[:steps] for v in (self.index, self.weight, self.noise))
        return replace(self, steps=min(steps, self.steps), index=index, weight=weight, noise=noise)


@dataclass(frozen=True)
class LocalWork:
    """A client's work per round: `epochs` passes or `steps` batches, of `batch` samples (None: all of the client's).

    With `steps`, passes follow one another until the steps are done. With `poisson` every sample joins every batch
    independently with probability batch/n. With `subsets` every batch is a new draw without replacement. With `nearest`
    a batch is a random sample of the client and its nearest neighbours (Chen et al. 2020, for Gaussian processes). With
    `whole` an epoch has only whole batches, ⌊n/batch⌋ (but one at least). With `batches` a client's data are cut into
    so many of equal size, and a pass goes on from round to round.
    """

    epochs: int | None = None
    steps: int | None = None
    batch: int | None = None
    poisson: bool = False
    nearest: bool = False
    subsets: bool = False
    whole: bool = False
    batches: int | None = None

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> LocalWork:
        """From an experiment's `local` section."""
        batch = None if spec.get("batch") == "full" else spec.get("batch")
        drawn = {name: spec.get("sampling") == name for name in ("poisson", "nearest", "subsets")}
        more = {"whole": spec.get("whole", False), "batches": spec.get("batches")}
        return cls(spec.get("epochs"), spec.get("steps"), batch, **drawn, **more)

    def width(self, size: int) -> int:
        """Samples per batch of a client with `size` samples."""
        if self.batches:
            return max(1, size // self.batches)
        return size if self.batch is None else min(self.batch, size)

    def steps_for(self, size: int) -> tuple[int, int]:
        """(steps per round, steps per epoch) of a client with `size` samples."""
        batches = 1 if self.batch is None else size // self.batch if self.whole else -(-size // self.batch)
        per_epoch = max(1, min(self.batches, size) if self.batches else batches)
        return (self.steps if self.steps is not None else (self.epochs or 0) * per_epoch), per_epoch

    def draw(self, holdings: Holdings, clients: Iterable[int], round: int, rng: Rng) -> dict[int, Batches]:
        """Each client's batches, one client after the other from one stream."""
        assert self.batch is not None  # a full batch is not drawn
        if self.poisson:
            return self._draw_poisson(holdings, clients, self.batch, round, rng)
        if self.subsets:
            return self._draw_subsets(holdings, list(clients), self.batch, round, rng)
        one = self._draw_nearest if self.nearest else self._draw_passes
        return {k: one(holdings, k, self.batch, round, rng) for k in clients}

    def walk(
        self, holdings: Holdings, clients: Iterable[int], round: int, rng: Callable[[int, int], Rng]
    ) -> dict[int, Batches]:
        """Each client's next batches. A pass, `rng(client, pass)`, is a permutation of the client's rows cut into
        `batches` of equal size; rows that are left over wait for the next pass."""
        found = {}
        for k in clients:
            rows = holdings.of(k)
            steps, per_pass = self.steps_for(len(rows))
            width, first = self.width(len(rows)), round * steps
            passes = range(first // per_pass, (first + steps - 1) // per_pass + 1)
            order = np.concatenate([rng(k, p).permutation(rows)[: per_pass * width] for p in passes])
            start = first % per_pass * width
            index = holdings.samples.on_device(order[start : start + steps * width].reshape(steps, width))
            found[k] = Batches(round, steps, per_pass, holdings.samples, index)
        return found

    def _draw_passes(self, holdings: Holdings, client: int, batch: int, round: int, rng: Rng) -> Batches:
        """A fresh permutation of the client's rows per epoch; a short last batch is padded, or left out if `whole`."""
        rows = holdings.of(client)
        steps, per_epoch = self.steps_for(len(rows))
        width = min(batch, len(rows))
        epochs = -(-steps // per_epoch)
        order = np.stack([rng.permutation(len(rows)) for _ in range(epochs)])
        padded = np.zeros((epochs, per_epoch * width), dtype=np.int64)
        kept = min(len(rows), per_epoch * width)
        padded[:, :kept] = order[:, :kept]
        index = holdings.samples.on_device(rows[padded].reshape(-1, width)[:steps])
        weight = None
        if kept < per_epoch * width:
            mask = np.tile(np.arange(per_epoch * width) < len(rows), epochs).reshape(-1, width)[:steps]
            weight = holdings.samples.on_device(mask).to(holdings.samples.dtype)
        return Batches(round, steps, per_epoch, holdings.samples, index, weight)

    def _draw_subsets(
        self, holdings: Holdings, clients: list[int], batch: int, round: int, rng: Rng
    ) -> dict[int, Batches]:
        """Clients of one size are drawn together, size after size."""
        sizes = holdings.sizes[clients]
        drawn: dict[int, Batches] = {}
        for size in np.unique(sizes).tolist():
            alike = [k for k, n in zip(clients, sizes.tolist(), strict=True) if n == size]
            steps, per_epoch = self.steps_for(size)
            chosen = _subsets(size, min(batch, size), len(alike) * steps, rng).reshape(len(alike), -1)
            index = np.take_along_axis(np.stack([holdings.of(k) for k in alike]), chosen, axis=1)
            parts = holdings.samples.on_device(index.reshape(len(alike), steps, -1)).unbind(0)
            drawn |= {
                k: Batches(round, steps, per_epoch, holdings.samples, i) for k, i in zip(alike, parts, strict=True)
            }
        return {k: drawn[k] for k in clients}

    def _draw_nearest(self, holdings: Holdings, client: int, batch: int, round: int, rng: Rng) -> Batches:
        """As many batches as in passes, none short: random samples, each with its nearest neighbours."""
        rows = holdings.samples.on_device(holdings.of(client))
        steps, per_epoch = self.steps_for(len(rows))
        width = min(batch, len(rows))
        centres = holdings.samples.on_device(
            rng.permuted(np.tile(np.arange(len(rows)), (-(-steps // len(rows)), 1)), axis=1)
        )
        x = holdings.samples.x[rows].flatten(1)
        distances = torch.cdist(x[centres.flatten()[:steps]], x)
        index = rows[distances.topk(width, largest=False).indices]
        return Batches(round, steps, per_epoch, holdings.samples, index)

    def _draw_poisson(
        self, holdings: Holdings, clients: Iterable[int], batch: int, round: int, rng: Rng
    ) -> dict[int, Batches]:
        """Batches of random size, padded to one width for all clients, so that these can be stacked."""
        drawn = {}
        for k in clients:
            rows = holdings.of(k)
            steps, _ = self.steps_for(len(rows))
            counts = rng.binomial(len(rows), min(1.0, batch / len(rows)), steps)
            drawn[k] = rows, counts, _distinct(len(rows), max(1, int(counts.max())), steps, rng)
        # a multiple of 8, so that the width rarely differs from seed to seed or from round to round
        width = -(-max(chosen.shape[1] for *_, chosen in drawn.values()) // 8) * 8
        batches = {}
        for k, (rows, counts, chosen) in drawn.items():
            padded = np.zeros((len(counts), width), dtype=np.int64)
            padded[:, : chosen.shape[1]] = chosen
            weight = holdings.samples.on_device(np.arange(width) < counts[:, None]).to(holdings.samples.dtype)
            index, size = holdings.samples.on_device(rows[padded]), float(min(batch, len(rows)))
            # there are no passes, so all steps are one epoch: clients of any size can be stacked
            batches[k] = Batches(round, len(counts), len(counts), holdings.samples, index, weight, size=size)
        return batches


def _subsets(total: int, count: int, draws: int, rng: Rng) -> np.ndarray:
    """Lines of `count` different numbers below `total`, the first steps of a shuffle: [draws, count]."""
    order, lines = np.tile(np.arange(total), (draws, 1)), np.arange(draws)
    for i in range(count):
        other = rng.integers(i, total, draws)
        chosen = order[lines, other]
        order[lines, other] = order[:, i]
        order[:, i] = chosen
    return order[:, :count]


def _distinct(total: int, count: int, draws: int, rng: Rng) -> np.ndarray:
    """Lines of `count` different numbers below `total`, in random order: [draws, count]."""
    if total <= 8 * count * count:
        return np.argsort(rng.random((draws, total)), axis=1)[:, :count]
    chosen = rng.integers(0, total, (draws, count))
    while True:  # redraw lines with a repeated number, at most one in sixteen
        ordered = np.sort(chosen, axis=1)
        twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(twice):
            return chosen
        chosen[twice] = rng.integers(0, total, (len(twice), count))
