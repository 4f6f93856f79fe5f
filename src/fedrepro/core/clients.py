"""Run `client_update` for many clients: one after the other, or all at once under `torch.func.vmap`.

`works` lists a round's clients of all replicates (settings × seeds). The loop yields results one by one, so that an
average needs no copy of all models. `vmap` stacks clients with the same number of steps (ragged sizes form groups),
also across settings that differ in real-valued hyper-parameters only. The two differ in the last bits of a float; the
model declares which one runs (`fedrepro.core.model`).
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree

from fedrepro.core.federation import Batches
from fedrepro.core.model import StrategyName
from fedrepro.core.params import Uploads
from fedrepro.core.task import Task

if TYPE_CHECKING:
    from fedrepro.core.algorithm import Algorithm

CHUNK_BYTES = 128 * 2**20  # of parameters and activations per stack; a larger round is cut into chunks
KEPT_OF_AN_IMAGE = 32  # bytes of activations that convolutions keep for the gradient, per byte of an image
READY_BYTES = 64 * 2**20  # mini-batches of a round above this size are read step by step, not beforehand
_STACKED = object()  # stands for a tensor in a structure


class Work(NamedTuple):
    """One client's part of a round."""

    algorithm: Algorithm
    message: Any
    local: Any
    batches: Batches


class Results:
    """A round's results in the order of the works, taken by one replicate after the other."""

    def __init__(self, each: Iterator[tuple[Any, Any]], stacked: tuple[Any, Any] | None = None):
        self._each, self._stacked, self._next = each, stacked, 0

    def take(
        self,
        clients: Sequence[int],
        local: dict[int, Any],
        known: Sequence[tuple[Any, Any]] = (),
        note: Callable[[tuple[Any, Any]], None] = lambda result: None,
    ) -> Uploads[Any]:
        """The uploads of the next `clients`; their new states, if any, go into `local`. The first results may be
        `known` already; of a loop, each new one is told to `note`."""
        start, self._next = self._next, self._next + len(clients)
        if self._stacked is None:
            return Uploads(self._one_by_one(clients, local, known, note))
        upload, states = (_slice(tree, start, self._next) for tree in self._stacked)
        if states is not None:
            local.update(zip(clients, _rows(states, len(clients)), strict=True))
        return Uploads(_rows(upload, len(clients)), upload)

    def _one_by_one(
        self,
        clients: Sequence[int],
        local: dict[int, Any],
        known: Sequence[tuple[Any, Any]],
        note: Callable[[tuple[Any, Any]], None],
    ) -> Iterator[Any]:
        for i, k in enumerate(clients):
            result = known[i] if i < len(known) else next(self._each)
            upload, mine = result
            if mine is not None:
                local[k] = mine
            if i >= len(known):
                note(result)
            yield upload


def run_loop(task: Task, works: Sequence[Work]) -> Results:
    """One client after the other, each computed when its result is taken."""
    return Results(w.algorithm.client_update(task, w.message, w.local, w.batches) for w in works)


@dataclass
class Vmap:
    """The vectorised strategy. Full batches recur every round: their shapes and the last round's stacks are kept."""

    _whole: dict[tuple[int, ...], Any] = field(default_factory=dict)
    _used: set[tuple[int, ...]] = field(default_factory=set)
    _sizes: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # id of a full batch → it and its shape

    def __call__(self, task: Task, works: Sequence[Work]) -> Results:
        shape = _Shapes(self._sizes)
        groups = defaultdict(list)
        for position, work in enumerate(works):
            groups[shape(work)].append(position)
        size = _chunk(works[0])
        chunks = [p[i : i + size] for p in groups.values() for i in range(0, len(p), size)]
        self._used.clear()
        stacked = [self._stacked(task, [works[i] for i in chunk]) for chunk in chunks]
        self._whole = {key: self._whole[key] for key in self._used}
        if len(chunks) == 1:
            return Results(iter(()), stacked[0])
        results: list[Any] = [None] * len(works)
        for chunk, result in zip(chunks, stacked, strict=True):
            for i, one in zip(chunk, _rows(result, len(chunk)), strict=True):
                results[i] = one
        return Results(iter(results))

    def _stacked(self, task: Task, works: Sequence[Work]) -> tuple[Any, Any]:
        """(uploads, local states) of works of one shape, with the clients as first axis."""
        hyper = _differing(works, like=next(task.model.parameters()))
        message, message_axes = _stack([w.message for w in works])
        local, local_axes = _stack([w.local for w in works])
        batches = works[0].batches
        whole = self._stack_whole(works) if batches.whole is not None else None
        index = None if batches.index is None else _stack([w.batches.index for w in works], always=True)[0]
        weight = None if batches.weight is None else _stack([w.batches.weight for w in works], always=True)[0]
        samples, ready = batches.samples, None
        if samples is not None and index is not None and index.numel() * samples.x[0].nbytes <= READY_BYTES:
            ready, index = samples.rows(index), None
        noise, noise_axis = _stack([w.batches.noise for w in works])
        structure: list[Any] = []

        def one_client(
            hyper: Any, message: Any, local: Any, whole: Any, index: Any, weight: Any, ready: Any, noise: Any
        ) -> list[Tensor]:
            mine = dataclasses.replace(batches, whole=whole, index=index, weight=weight, ready=ready, noise=noise)
            result = _with(works[0].algorithm, hyper).client_update(task, message, local, mine)
            leaves, spec = _pytree.tree_flatten(result)
            structure[:] = [spec, [_STACKED if isinstance(leaf, Tensor) else leaf for leaf in leaves]]
            return [leaf for leaf in leaves if isinstance(leaf, Tensor)]

        stacked = (hyper, message, local, whole, index, weight, ready, noise)
        axes = (_axes(hyper), message_axes, local_axes, *map(_axes, (whole, index, weight, ready)), noise_axis)
        outputs = iter(torch.func.vmap(one_client, in_dims=axes)(*stacked))
        spec, leaves = structure
        uploads, states = _pytree.tree_unflatten([next(outputs) if v is _STACKED else v for v in leaves], spec)
        return uploads, states

    def _stack_whole(self, works: Sequence[Work]) -> Any:
        key = tuple(id(w.batches.whole) for w in works)
        if key not in self._whole:
            # the batches are kept with their stack: an id is unique only while its object lives
            whole = [w.batches.whole for w in works]
            self._whole[key] = (_stack(whole, always=True)[0], whole)
        self._used.add(key)
        return self._whole[key][0]


class _Shapes:
    """What two works must share to be stacked: code, structure, hyper-parameters that are not real numbers.

    Computed once per object and round; for full batches once for all rounds, in `whole`, which keeps the batch too: an
    id is unique only while its object lives.
    """

    def __init__(self, whole: dict[int, tuple[Any, Any]]):
        self.whole = whole
        self.seen: dict[int, Any] = {}

    def __call__(self, work: Work) -> tuple[Any, ...]:
        message, local = work.message, work.local
        return (
            self._once(_static, work.algorithm),
            message.shape if isinstance(message, Tensor) else self._once(_sizes, message),
            local.shape if isinstance(local, Tensor) else self._once(_sizes, local),
            self._once(self._batches, work.batches),
        )

    def _batches(self, b: Batches) -> tuple[Any, ...]:
        index = None if b.index is None else (tuple(b.index.shape), id(b.samples), b.weight is None)
        if id(b.whole) not in self.whole:
            self.whole[id(b.whole)] = b.whole, _sizes(b.whole)
        return b.round, b.exchange, b.steps, b.steps_per_epoch, b.size, index, self.whole[id(b.whole)][1]

    def _once(self, look: Callable[[Any], Any], thing: Any) -> Any:
        if id(thing) not in self.seen:
            self.seen[id(thing)] = look(thing)
        return self.seen[id(thing)]


def _static(algorithm: Algorithm) -> tuple[Any, ...]:
    values = ((f.name, getattr(algorithm, f.name)) for f in dataclasses.fields(algorithm))
    fixed = [(n, v) for n, v in values if not isinstance(v, float) and n not in algorithm.server_only]
    return type(algorithm), repr(fixed)


def _sizes(tree: Any) -> Any:
    """The shapes of a tree's tensors, and its other values."""
    if isinstance(tree, Tensor):
        return tuple(tree.shape)
    if isinstance(tree, dict):
        return tuple((k, _sizes(v)) for k, v in tree.items())
    if isinstance(tree, list | tuple):
        return type(tree), tuple(map(_sizes, tree))
    return repr(tree)


def _differing(works: Sequence[Work], like: Tensor) -> dict[str, Tensor]:
    """Real-valued hyper-parameters that differ among the stacked works: name → [C], of `like`'s type and device."""
    algorithms = {id(w.algorithm): w.algorithm for w in works}
    if len(algorithms) == 1:
        return {}
    first = works[0].algorithm
    names = [f.name for f in dataclasses.fields(first) if isinstance(getattr(first, f.name), float)]
    differs = {n: n not in first.server_only and len({getattr(a, n) for a in algorithms.values()}) > 1 for n in names}
    return {n: like.new_tensor([getattr(w.algorithm, n) for w in works]) for n in names if differs[n]}


def _with(algorithm: Algorithm, hyper: dict[str, Tensor]) -> Algorithm:
    """The algorithm with some hyper-parameters replaced by this client's scalars (already validated)."""
    if not hyper:
        return algorithm
    mine = copy.copy(algorithm)
    for name, value in hyper.items():
        object.__setattr__(mine, name, value)
    return mine


def _chunk(work: Work) -> int:
    """How many clients like this one are stacked at a time."""
    size = sum(v.nbytes for v in _pytree.tree_leaves(work.message) if isinstance(v, Tensor))
    index, samples = work.batches.index, work.batches.samples
    if index is not None and samples is not None and samples.x.dim() > 2:
        size += KEPT_OF_AN_IMAGE * index.shape[-1] * samples.x[0].numel() * samples.dtype.itemsize
    return max(1, CHUNK_BYTES // max(1, size))


def _axes(tree: Any) -> Any:
    """0 for every tensor of a stacked tree, None for other values."""
    return _pytree.tree_map(lambda leaf: 0 if isinstance(leaf, Tensor) else None, tree)


def _stack(trees: Sequence[Any], always: bool = False) -> tuple[Any, Any]:
    """(trees stacked along a new first axis, the axes for vmap). One shared tree is not copied."""
    unique = {id(t): t for t in trees}
    if len(unique) == 1 and not always:
        return trees[0], None
    if all(isinstance(t, Tensor) for t in unique.values()):  # often thousands of small ones: flattening takes long
        return torch.stack(tuple(trees)), 0
    leaves, spec = zip(*(_pytree.tree_flatten(t) for t in unique.values()), strict=True)
    stacked = [torch.stack(c) if isinstance(c[0], Tensor) else c[0] for c in zip(*leaves, strict=True)]
    if len(unique) < len(trees):
        place = {key: i for i, key in enumerate(unique)}
        owner = [place[id(t)] for t in trees]
        stacked = [s[owner] if isinstance(s, Tensor) else s for s in stacked]
    tree = _pytree.tree_unflatten(stacked, spec[0])
    return tree, _axes(tree)


def _slice(tree: Any, start: int, stop: int) -> Any:
    return _pytree.tree_map(lambda leaf: leaf[start:stop] if isinstance(leaf, Tensor) else leaf, tree)


def _rows(tree: Any, clients: int) -> Iterator[Any]:
    """A tree stacked along its tensors' first axis as one tree per client."""
    if type(tree) is tuple and all(isinstance(part, Tensor | None) for part in tree):  # as above
        columns = [itertools.repeat(None, clients) if part is None else part.unbind(0) for part in tree]
        yield from zip(*columns, strict=True)
        return
    leaves, spec = _pytree.tree_flatten(tree)
    columns = [leaf.unbind(0) if isinstance(leaf, Tensor) else itertools.repeat(leaf, clients) for leaf in leaves]
    for row in zip(*columns, strict=True):
        yield _pytree.tree_unflatten(list(row), spec)


Strategy = Callable[[Task, Sequence[Work]], Results]


def strategy(name: StrategyName) -> Strategy:
    return run_loop if name == "loop" else Vmap()
