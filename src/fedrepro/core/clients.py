"""Run `client_update` for many clients: one after the other, or all at once under `torch.func.vmap`.

`works` lists a round's clients of all replicates (settings × seeds). The loop keeps one model resident and
yields results one by one, so that an average needs no copy of all models. `vmap` stacks clients that take the
same number of steps (ragged sizes fall into groups, no step is wasted) and, where settings of a grid differ
in real-valued hyper-parameters only, these too.
"""

from __future__ import annotations

import copy
import dataclasses
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree

from fedrepro.core.federation import Batches
from fedrepro.core.task import Task

if TYPE_CHECKING:
    from fedrepro.core.algorithm import Algorithm

CALIBRATION_STEPS = 4
CALIBRATION_LOOP_CLIENTS = 8
#: vmap must win by this factor to be chosen: below it the choice would flip with the machine's noise.
CALIBRATION_MARGIN = 1.25
#: bytes of parameters stacked at a time; a round of more is cut into chunks.
CHUNK_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Work:
    """One client's part of a round. `key` says which client of which replicate it is."""

    key: tuple[int, int]
    algorithm: Algorithm
    message: Any
    local: Any
    batches: Batches


Result = tuple[Any, Any]  # (upload, the client's new local state)


def run_loop(task: Task, works: Sequence[Work]) -> Iterator[Result]:
    """Results in the order of `works`, each computed when it is asked for."""
    for work in works:
        yield work.algorithm.client_update(task, work.message, work.local, work.batches)


@dataclass
class Vmap:
    """The vectorised strategy. It remembers the last stack of full batches: they are the same every round."""

    _whole: dict[tuple, Any] = field(default_factory=dict)

    def __call__(self, task: Task, works: Sequence[Work]) -> Iterator[Result]:
        shape = _Shapes()
        groups = defaultdict(list)
        for position, work in enumerate(works):
            groups[shape(work)].append(position)
        results: list[Result | None] = [None] * len(works)
        for positions in groups.values():
            members = [works[i] for i in positions]
            size = _chunk(members[0])
            for start in range(0, len(members), size):
                chunk = positions[start : start + size]
                for i, result in zip(chunk, self._stacked(task, members[start : start + size]), strict=True):
                    results[i] = result
        return iter(results)

    def _stacked(self, task: Task, works: Sequence[Work]) -> Iterator[Result]:
        first = works[0]
        hyper = _differing(works, dtype=next(task.model.parameters()).dtype)
        message, message_axes = _stack([w.message for w in works])
        local, local_axes = _stack([w.local for w in works])
        batches = first.batches
        whole = self._stack_whole(works) if batches.whole is not None else None
        index = None if batches.index is None else torch.stack([w.batches.index for w in works])
        weight = None if batches.weight is None else torch.stack([w.batches.weight for w in works])

        structure: list[Any] = []

        def one_client(hyper, message, local, whole, index, weight):
            mine = dataclasses.replace(batches, whole=whole, index=index, weight=weight)
            result = _with(first.algorithm, hyper).client_update(task, message, local, mine)
            leaves, spec = _pytree.tree_flatten(result)
            structure[:] = [spec, [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]]
            return [leaf for leaf in leaves if isinstance(leaf, Tensor)]

        stacked = (hyper, message, local, whole, index, weight)
        axes = (_axes(hyper), message_axes, local_axes, _axes(whole), _axes(index), _axes(weight))
        outputs = torch.func.vmap(one_client, in_dims=axes)(*stacked)
        return _unstack(outputs, *structure)

    def _stack_whole(self, works: Sequence[Work]) -> Any:
        key = tuple(id(w.batches.whole) for w in works)
        if key not in self._whole:
            self._whole = {key: _stack([w.batches.whole for w in works], always=True)[0]}
        return self._whole[key]


def calibrate(task: Task, works: Sequence[Work]) -> dict[str, float | str]:
    """Time both strategies on a few steps of this round's own work; results are thrown away.

    Returns {"name": …, "loop_ms": …, "vmap_ms": …} for the whole round's clients, a few steps each.
    """
    short = [dataclasses.replace(w, batches=w.batches.head(CALIBRATION_STEPS)) for w in works]
    few = short[:CALIBRATION_LOOP_CLIENTS]
    loop = _seconds(lambda: list(run_loop(task, few))) * len(short) / len(few)
    strategy = Vmap()
    try:
        together = _seconds(lambda: list(strategy(task, short)))
    except (RuntimeError, NotImplementedError) as error:
        return {"name": "loop", "loop_ms": 1e3 * loop, "vmap_failed": str(error).splitlines()[0]}
    name = "vmap" if loop > CALIBRATION_MARGIN * together else "loop"
    return {"name": name, "loop_ms": 1e3 * loop, "vmap_ms": 1e3 * together}


def _seconds(call: Callable[[], object], repeats: int = 3) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class _Shapes:
    """What two works must share to be stacked: code, structure, hyper-parameters that are not real numbers.

    Looked at once for every object of a round, since thousands of works share algorithm, message and data.
    """

    def __init__(self):
        self.seen: dict[int, Any] = {}

    def __call__(self, work: Work) -> tuple:
        b = work.batches
        index = None if b.index is None else (tuple(b.index.shape), id(b.samples), b.weight is None)
        trees = tuple(self._once(_sizes, tree) for tree in (work.message, work.local, b.whole))
        return (self._once(_static, work.algorithm), b.round, b.steps, b.steps_per_epoch, index, trees)

    def _once(self, look: Callable[[Any], Any], thing: Any) -> Any:
        if id(thing) not in self.seen:
            self.seen[id(thing)] = look(thing)
        return self.seen[id(thing)]


def _static(algorithm: Algorithm) -> tuple:
    values = ((f.name, getattr(algorithm, f.name)) for f in dataclasses.fields(algorithm))
    fixed = [(n, v) for n, v in values if not isinstance(v, float) and n not in algorithm.server_only]
    return type(algorithm), repr(fixed)


def _sizes(tree: Any) -> tuple:
    leaves, spec = _pytree.tree_flatten(tree)
    return tuple(tuple(v.shape) if isinstance(v, Tensor) else repr(v) for v in leaves), str(spec)


def _differing(works: Sequence[Work], dtype: torch.dtype) -> dict[str, Tensor]:
    """Real-valued hyper-parameters that differ among the stacked works: name → [C]."""
    algorithms = {id(w.algorithm): w.algorithm for w in works}
    if len(algorithms) == 1:
        return {}
    first = works[0].algorithm
    names = [f.name for f in dataclasses.fields(first) if isinstance(getattr(first, f.name), float)]
    names = [n for n in names if n not in first.server_only]
    names = [n for n in names if len({getattr(a, n) for a in algorithms.values()}) > 1]
    return {n: torch.tensor([getattr(w.algorithm, n) for w in works], dtype=dtype) for n in names}


def _with(algorithm: Algorithm, hyper: dict[str, Tensor]) -> Algorithm:
    """The algorithm with some hyper-parameters replaced by this client's scalars (already validated)."""
    if not hyper:
        return algorithm
    mine = copy.copy(algorithm)
    for name, value in hyper.items():
        object.__setattr__(mine, name, value)
    return mine


def _chunk(work: Work) -> int:
    leaves = [v for v in _pytree.tree_leaves(work.message) if isinstance(v, Tensor)]
    size = sum(v.numel() * v.element_size() for v in leaves)
    return max(1, CHUNK_BYTES // max(1, size))


def _axes(tree: Any) -> Any:
    """0 for every tensor of a stacked tree, None for what is not a tensor."""
    return _pytree.tree_map(lambda leaf: 0 if isinstance(leaf, Tensor) else None, tree)


def _stack(trees: Sequence[Any], always: bool = False) -> tuple[Any, Any]:
    """(trees of tensors stacked along a new first axis, the axes for vmap). One shared tree is not copied."""
    unique = {id(t): t for t in trees}
    if len(unique) == 1 and not always:
        return trees[0], None
    leaves, spec = zip(*(_pytree.tree_flatten(t) for t in unique.values()), strict=True)
    stacked = [torch.stack(c) if isinstance(c[0], Tensor) else c[0] for c in zip(*leaves, strict=True)]
    if len(unique) < len(trees):
        place = {key: i for i, key in enumerate(unique)}
        owner = torch.tensor([place[id(t)] for t in trees], device=stacked[0].device)
        stacked = [s[owner] if isinstance(s, Tensor) else s for s in stacked]
    tree = _pytree.tree_unflatten(stacked, spec[0])
    return tree, _axes(tree)


def _unstack(outputs: list[Tensor], spec: Any, constants: list[Any]) -> Iterator[Result]:
    """Cut stacked outputs [C, ...] into one result a client; what is not a tensor is the same for all."""
    tensors = [i for i, constant in enumerate(constants) if constant is None]
    for row in zip(*(leaf.unbind(0) for leaf in outputs), strict=True):
        leaves = list(constants)
        for i, leaf in zip(tensors, row, strict=False):
            leaves[i] = leaf
        yield _pytree.tree_unflatten(leaves, spec)


_STRATEGIES = {"loop": lambda: run_loop, "vmap": Vmap}


def strategy(name: str) -> Callable[[Task, Sequence[Work]], Iterator[Result]]:
    """The named way to run a round's clients."""
    return _STRATEGIES[name]()
