"""Algebra on model parameters.

`Params` is a dict from parameter name to tensor that adds and scales like a vector, so that an algorithm reads like the
paper's box. One tensor per parameter, rather than one flat vector, saves a copy of the gradient in every step. Outside
`torch.func.vmap` operations use torch's fused `_foreach` kernels, inside it, where those have no batching rule, they go
tensor by tensor.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree

T = TypeVar("T")


class Params(dict[str, Tensor]):
    """Named tensors with vector arithmetic. All operations but `descend` leave their operands as they are.

    A model's buffers (batch norm's running statistics) are among its parameters: they are sent and averaged alike, but
    no step moves them. A gradient lacks their names; its `buffers` are their values after its batch.
    """

    buffers: Mapping[str, Tensor] = MappingProxyType({})

    def add(self, other: Params, alpha: float | Tensor = 1.0) -> Params:
        """self + alpha · other, in one pass over memory; with the buffers of self."""
        if self.buffers:
            return Params(self).add(other, alpha).with_buffers(self.buffers)
        if isinstance(alpha, Tensor):
            return Params({k: torch.addcmul(v, other[k], alpha) for k, v in self.items()})
        if inside_transform():
            return Params({k: torch.add(v, other[k], alpha=alpha) for k, v in self.items()})
        values = torch._foreach_add(list(self.values()), [other[k] for k in self], alpha=alpha)
        return Params(zip(self, values, strict=True))

    def descend(self, gradient: Params, step: float | Tensor) -> Params:
        """self − step · gradient, in the memory of `self` if possible: call it on a copy."""
        if gradient.buffers:
            moved = Params({k: v for k, v in self.items() if k not in gradient.buffers})
            return Params({**moved.descend(Params(gradient), step), **gradient.buffers})
        if isinstance(step, Tensor):
            return Params({k: torch.addcmul(v, gradient[k], step, value=-1) for k, v in self.items()})
        if inside_transform():
            return self.add(gradient, alpha=-step)
        torch._foreach_add_(list(self.values()), [gradient[k] for k in self], alpha=-step)
        return self

    def with_buffers(self, buffers: Mapping[str, Tensor]) -> Params:
        """The same gradient with `buffers`."""
        mine = Params(self)
        mine.buffers = buffers
        return mine

    def __add__(self, other: Params) -> Params:
        return self.add(other)

    def __sub__(self, other: Params) -> Params:
        return self.add(other, alpha=-1.0)

    def __mul__(self, factor: float | Tensor) -> Params:
        return Params({k: v * factor for k, v in self.items()})

    __rmul__ = __mul__

    def __neg__(self) -> Params:
        return self * -1.0

    def dot(self, other: Params) -> Tensor:
        """⟨self, other⟩, a scalar."""
        return cast(Tensor, sum((v * other[k]).sum() for k, v in self.items()))

    def norm(self) -> Tensor:
        """Euclidean norm, a scalar."""
        return self.dot(self).sqrt()

    def clone(self) -> Params:
        return Params({k: v.clone() for k, v in self.items()})

    def flatten(self, stacked: bool = False) -> Tensor:
        """One vector [P] in the order of the dict; for stacked parameters one row per client [C, P]."""
        flat = [v.flatten(1) if stacked else v.reshape(-1) for v in self.values()]
        return flat[0] if len(flat) == 1 else torch.cat(flat, dim=-1)

    def unflatten(self, vector: Tensor) -> Params:
        """The inverse of `flatten`, with the shapes of `self`."""
        pieces = torch.split(vector, [v.numel() for v in self.values()])
        return Params({k: piece.view(v.shape) for (k, v), piece in zip(self.items(), pieces, strict=True)})


class Uploads(Generic[T]):
    """The uploads of a round's clients, in the order of the cohort.

    Iterating computes one upload at a time and keeps none; `stack` gives all as one tree whose tensors have the clients
    as first axis, at no cost if they were computed together.
    """

    def __init__(self, each: Iterator[T], stacked: T | None = None):
        self._each, self._stacked = each, stacked
        self.bytes = 0

    def __iter__(self) -> Iterator[T]:
        return self._each

    @property
    def together(self) -> bool:
        return self._stacked is not None

    def count(self) -> None:
        """Count the bytes sent in `bytes`, complete once every upload was taken."""
        if self.together:
            self.bytes = tree_bytes(self._stacked)
        else:
            self._each = self._counted(self._each)

    def _counted(self, each: Iterator[T]) -> Iterator[T]:
        for upload in each:
            self.bytes += tree_bytes(upload)
            yield upload

    def finish(self) -> None:
        """Compute the uploads that were not taken: the clients' new states depend on it."""
        if not self.together:
            deque(self._each, maxlen=0)

    def stack(self) -> T:
        if self._stacked is not None:
            return self._stacked
        leaves, specs = zip(*(_pytree.tree_flatten(upload) for upload in self._each), strict=True)
        stacked = [torch.stack(column) for column in zip(*leaves, strict=True)]
        return cast(T, _pytree.tree_unflatten(stacked, specs[0]))


def weighted_sum(params: Uploads[Params] | Iterable[Params], weights: Sequence[float] | np.ndarray) -> Params:
    """Σ weights[i] · params[i]. An iterator is taken one at a time."""
    if isinstance(params, Uploads) and params.together:
        stacked = params.stack()
        factors = torch.as_tensor(np.asarray(weights)).to(next(iter(stacked.values())))
        return Params({k: torch.tensordot(factors, v, dims=1) for k, v in stacked.items()})
    pairs = zip(params, weights, strict=True)
    first, weight = next(pairs)
    total = torch._foreach_mul(list(first.values()), float(weight))
    for w, weight in pairs:
        torch._foreach_add_(total, [w[k] for k in first], alpha=float(weight))
    return Params(zip(first, total, strict=True))


def averaged(uploads: Uploads[tuple[Params, Tensor]], weights: np.ndarray) -> tuple[Params, Tensor]:
    """Of uploads (w_k, F_k): (Σ weights_k w_k, the losses [C] in float64), the sum as in `weighted_sum`."""
    if uploads.together:
        models, losses = stacked(uploads)
        return weighted_sum(Uploads(iter(()), models), weights), losses
    seen: list[Tensor] = []

    def models_alone() -> Iterator[Params]:
        for w_k, loss in uploads:
            seen.append(loss)
            yield w_k

    return weighted_sum(models_alone(), weights), torch.stack(seen).to("cpu", torch.float64)


def stacked(uploads: Uploads[tuple[Params, Tensor]]) -> tuple[Params, Tensor]:
    """Of uploads (w_k, F_k): (the models with the clients as first axis, the losses [C] in float64)."""
    models, losses = uploads.stack()
    return models, losses.to("cpu", torch.float64)


def towards(w: Params, models: Params, shares: Tensor) -> Params:
    """w − Σ_k shares_k (w − w_k): the weighted average of the models if the shares sum to 1."""
    return weighted_sum(Uploads(iter(()), models), shares.numpy()).add(w, alpha=1 - float(shares.sum()))


def tree_bytes(tree: Any) -> int:
    """Bytes of the tensors and arrays of a tree."""
    return sum(v.nbytes for v in _pytree.tree_leaves(tree) if isinstance(v, Tensor | np.ndarray | np.generic))


def all_finite(tree: Any) -> bool:
    """Whether no tensor of a tree has a NaN or an infinity."""
    leaves = _pytree.tree_leaves(tree)
    tensors = [v for v in leaves if isinstance(v, Tensor) and v.is_floating_point() and v.numel()]
    if not all(math.isfinite(v) for v in leaves if isinstance(v, float)):
        return False
    by_device: dict[torch.device, list[Tensor]] = {}
    for tensor in tensors:
        by_device.setdefault(tensor.device, []).append(tensor)
    norms = (torch.stack(torch._foreach_norm(alike, torch.inf)) for alike in by_device.values())
    return all(bool(each.isfinite().all()) for each in norms)


def inside_transform() -> bool:
    return torch._C._functorch.maybe_current_level() is not None


_pytree.register_pytree_node(
    Params,
    lambda p: (list(p.values()), list(p)),
    lambda values, names: Params(zip(names, values, strict=True)),
    serialized_type_name="fedrepro.Params",
)
