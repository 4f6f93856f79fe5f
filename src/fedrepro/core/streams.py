"""Named random streams, each derived from (experiment, seed, purpose, …).

No use of chance disturbs another, all algorithms of one seed share partition, initialisation, client sampling and
batch order, and a run that resumes at round t needs no saved generator state.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

PURPOSES = ("data", "partition", "init", "clients", "batches", "noise")


def entropy(experiment: str, seed: int, purpose: str, *keys: int | str) -> int:
    """128 bits from the arguments alone."""
    if purpose not in PURPOSES:
        raise ValueError(f"unknown stream '{purpose}'; valid: {', '.join(PURPOSES)}")
    text = "\x1f".join(map(str, (experiment, seed, purpose, *keys)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")


def generator(experiment: str, seed: int, purpose: str, *keys: int | str) -> np.random.Generator:
    return np.random.default_rng(entropy(experiment, seed, purpose, *keys))


def torch_generator(experiment: str, seed: int, purpose: str, *keys: int | str) -> torch.Generator:
    """On the CPU, whatever the device of the run."""
    import torch  # here: preparing data needs streams, but not torch's two seconds

    return torch.Generator().manual_seed(entropy(experiment, seed, purpose, *keys) % 2**63)


def seeds_of(shard: str) -> list[int]:
    """`10-19` → [10, …, 19]."""
    first, last = map(int, shard.split("-"))
    return list(range(first, last + 1))
