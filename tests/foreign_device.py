"""A device that is not the host, without a GPU: torch's `meta` device computes shapes only, and refuses to mix with the
cpu. Where a method reads a number from it, a GPU would have to finish all work before: such synchronisations are
counted, and answered with ones."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from fedrepro.contracts.small import SmallTask
from fedrepro.core.federation import Federation, Holdings, Samples
from fedrepro.core.params import Params

META = torch.device("meta")
_aten = torch.ops.aten
_READS = (_aten._local_scalar_dense, _aten.equal, _aten.nonzero, _aten.masked_select)


class ForeignDevice(TorchDispatchMode):
    """Counts what is read from the meta device: `reads` by place in the library, `in_steps` those of client updates."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.in_steps: Counter[str] = Counter()
        self._any: list[Tensor] = []  # results of any(): answered with False, which is "nothing went wrong"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if first is None or not first.is_meta:
            return func(*args, **kwargs)
        packet = func.overloadpacket
        to_host = packet is _aten._to_copy and torch.device(kwargs.get("device") or META).type == "cpu"
        masks = packet in (_aten.index, _aten.index_put_) and any(
            isinstance(i, Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1]
        )
        if not (to_host or masks or packet in _READS):
            found = func(*args, **kwargs)
            self._any += [found] if packet is _aten.any else []
            return found
        self._note(packet)
        if to_host:
            answer = torch.ones(first.shape, dtype=kwargs.get("dtype") or first.dtype)
            square = first.dim() > 1 and first.shape[-1] == first.shape[-2]
            return answer + torch.eye(first.shape[-1]).to(answer) if square else answer  # of full rank
        if packet is _aten._local_scalar_dense:
            if first.dtype == torch.bool:
                return not any(first is other for other in self._any)
            return 1.0 if first.is_floating_point() else 1
        if packet is _aten.equal:
            return True
        if packet is _aten.nonzero:
            return torch.empty(first.numel(), first.dim(), dtype=torch.int64, device=META)
        return first.flatten() if packet is _aten.masked_select else first.clone()

    def _note(self, packet: Any) -> None:
        place, inside, frame = "", False, sys._getframe()
        while frame is not None:
            file, name = frame.f_code.co_filename, frame.f_code.co_name
            if "/src/fedrepro/" in file:
                place = place or f"{file.partition('/src/fedrepro/')[2]}: {name}"
                inside = inside or name == "client_update"
            frame = frame.f_back
        self.reads[place or str(packet)] += 1
        if inside:
            self.in_steps[place] += 1


def abroad(thing: Any) -> Any:
    """Tensors, a task or a federation on the meta device."""
    if isinstance(thing, SmallTask):
        moved = SmallTask(thing.model.to(META))
        moved.start = Params({name: value.to(META) for name, value in thing.start.items()})
        return moved
    if isinstance(thing, Federation):
        held = {name: _moved(getattr(thing, name)) for name in ("train", "validation", "test")}
        return replace(thing, **held)
    return tree_map(lambda leaf: leaf.to(META) if isinstance(leaf, Tensor) else leaf, thing)


def _moved(holdings: Holdings | None) -> Holdings | None:
    if holdings is None:
        return None
    samples = Samples(*(None if part is None else part.to(META) for part in holdings.samples))
    return replace(holdings, samples=samples)
