"""Algebra on model parameters.

`Params` is a dict from parameter name to tensor that adds and scales like a vector, so that an algorithm
reads like the paper's box. Keeping one tensor a parameter, rather than one flat vector, saves a copy of the
whole gradient in every step; `flatten` gives the vector where a method wants one.

Outside `torch.func.vmap` the operations go through torch's fused `_foreach` kernels; inside it, where those
have no batching rule, tensor by tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.utils import _pytree


class Params(dict[str, Tensor]):
    """Named tensors with vector arithmetic. Operations return new objects; operands stay as they are."""

    def add(self, other: Params, alpha: float | Tensor = 1.0) -> Params:
        """self + alpha · other, in one pass over memory."""
        if isinstance(alpha, Tensor):
            return Params({k: torch.addcmul(v, other[k], alpha) for k, v in self.items()})
        if inside_transform():
            return Params({k: torch.add(v, other[k], alpha=alpha) for k, v in self.items()})
        values = torch._foreach_add(list(self.values()), [other[k] for k in self], alpha=alpha)
        return Params(zip(self, values, strict=True))

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
        return sum((v * other[k]).sum() for k, v in self.items())

    def norm(self) -> Tensor:
        """Euclidean norm, a scalar."""
        return self.dot(self).sqrt()

    def clone(self) -> Params:
        return Params({k: v.clone() for k, v in self.items()})

    def is_finite(self) -> bool:
        """Whether no entry is NaN or infinite. One number a tensor: a sum is finite iff (short of overflow)
        all its terms are, and is far cheaper than a mask."""
        total = sum(v.detach().sum(dtype=torch.float64) for v in self.values())
        return bool(torch.isfinite(total))

    def flatten(self) -> Tensor:
        """One vector [P], parameters in the order of their names in the dict."""
        flat = [v.reshape(-1) for v in self.values()]
        return flat[0] if len(flat) == 1 else torch.cat(flat)

    def unflatten(self, vector: Tensor) -> Params:
        """The inverse of `flatten`, with the shapes of `self`."""
        pieces = vector.split([v.numel() for v in self.values()])
        return Params({k: piece.view(v.shape) for (k, v), piece in zip(self.items(), pieces, strict=True)})


def weighted_sum(params: Iterable[Params], weights: Iterable[float]) -> Params:
    """Σ weights[i] · params[i]. Takes the parameters one at a time: an iterator is never held as a whole."""
    pairs = zip(params, weights, strict=True)
    first, weight = next(pairs)
    total = torch._foreach_mul(list(first.values()), float(weight))
    for w, weight in pairs:
        torch._foreach_add_(total, [w[k] for k in first], alpha=float(weight))
    return Params(zip(first, total, strict=True))


def inside_transform() -> bool:
    return torch._C._functorch.maybe_current_level() is not None


_pytree.register_pytree_node(
    Params,
    lambda p: (list(p.values()), list(p)),
    lambda values, names: Params(zip(names, values, strict=True)),
    serialized_type_name="fedrepro.Params",
)
