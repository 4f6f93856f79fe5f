"""Small federations by hand. The other builders are the contracts' own, `fedrepro.contracts.small`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedrepro.contracts.small import (
    EXPERIMENT,
    FULL_BATCH,
    MINI_BATCH,
    RAGGED,
    GradientCounter,
    Run,
    federations,
    holdings,
    make_plan,
    make_problem,
    make_replicates,
    make_task,
    run,
    spying,
    tensors,
)
from fedrepro.core.federation import Federation, Holdings, Samples
from fedrepro.core.params import Params

__all__ = [
    "EXPERIMENT",
    "FULL_BATCH",
    "MINI_BATCH",
    "RAGGED",
    "GradientCounter",
    "Run",
    "federate",
    "federations",
    "holdings",
    "make_plan",
    "make_problem",
    "make_replicates",
    "make_task",
    "params",
    "permuted",
    "run",
    "spying",
    "tensors",
]


def params(**values: Any) -> Params:
    return Params({k: torch.as_tensor(v, dtype=torch.float64) for k, v in values.items()})


# --- data -----------------------------------------------------------------------------------------------------------


def federate(*data: tuple[Any, Any], test: tuple[Any, Any] | None = None) -> Federation:
    """A federation from each client's (x, y); a global test set if given. Whole numbers in y are classes."""

    def together(pairs) -> Samples:
        x, y = (np.concatenate([np.asarray(pair[i]) for pair in pairs]) for i in (0, 1))
        return Samples(torch.as_tensor(x, dtype=torch.float64), torch.from_numpy(y))

    train_set = holdings(together(data), [len(y) for _, y in data])
    test_set = None if test is None else holdings(together([test]), [len(test[1])])
    return Federation(train_set, test=test_set)


def permuted(federation: Federation, order: Sequence[int]) -> Federation:
    """The same clients under other numbers."""
    mine = [federation.train.of(k) for k in order]
    offsets = np.cumsum([0, *map(len, mine)], dtype=np.int64)
    return Federation(Holdings(federation.train.samples, np.concatenate(mine), offsets))
