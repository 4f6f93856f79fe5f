"""FedAvg whose clients also send their loss: what the fair methods of the thesis (ch. 2) have in common.

A client uploads (w_k, F_k), F_k over its whole training set: the batches of the round's first pass, each counted by its
samples (with `local.steps` fewer than a pass, over the samples of the round). What a method makes of the losses is its
own; here are the means to weigh the clients' models by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Problem
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task


@dataclass(frozen=True)
class Weighed(FedAvg):
    """FedAvg's local steps; the upload has F_k at the server's model, which is where these methods want it."""

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        w, local = super().client_update(task, message, local, batches)
        return (w, training_loss(task, message, batches)), local


@torch.no_grad()
def training_loss(task: Task, w: Params, batches: Batches) -> Tensor:
    """F_k(w), a scalar."""
    if batches.whole is not None:
        return task.loss(w, batches.whole)
    total: Any = 0.0
    count: Any = 0.0
    for batch in batches.head(min(batches.steps, batches.steps_per_epoch)):
        size = len(batch.y) if batch.weight is None else batch.weight.sum()
        total, count = total + size * task.loss(w, batch), count + size
    return total / count


def averaged(uploads: Uploads[Any], weights: np.ndarray) -> tuple[Params, Tensor]:
    """(Σ weights_k w_k, the losses [C] in float64), one client at a time: FedAvg's average, to the last bit."""
    if uploads.together:
        models, losses = uploads.stack()
        return weighted_sum(Uploads(iter(()), models), weights), losses.to("cpu", torch.float64)
    seen: list[Tensor] = []

    def models_alone() -> Iterator[Params]:
        for w_k, loss in uploads:
            seen.append(loss)
            yield w_k

    return weighted_sum(models_alone(), weights), torch.stack(seen).to("cpu", torch.float64)


def stacked(uploads: Uploads[Any]) -> tuple[Params, Tensor]:
    """(the clients' models with the clients as first axis, their losses [C] in float64)."""
    models, losses = uploads.stack()
    return models, losses.to("cpu", torch.float64)


def group_index(problem: Problem) -> tuple[list[str], Tensor]:
    """(names of the groups, s_k [K]); each client its own group where the federation has none."""
    of = problem.federation.groups or tuple(map(str, range(len(problem.federation))))
    place = {name: i for i, name in enumerate(dict.fromkeys(of))}
    return list(place), torch.tensor([place[name] for name in of])


def group_means(losses: Tensor, known: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """(mean loss of the known clients of each group [d], 0 where there is none; how many these are [d])."""
    count = torch.bincount(group[known], minlength=int(group.max()) + 1)
    total = torch.zeros(len(count), dtype=losses.dtype).index_add_(0, group[known], losses[known])
    return total / count.clamp_min(1), count


def towards(w: Params, models: Params, shares: Tensor) -> Params:
    """w − Σ_k shares_k (w − w_k): the weighted average of the models where the shares sum to 1."""
    moved = weighted_sum(Uploads(iter(()), models), shares.numpy())
    return moved.add(w, alpha=1 - float(shares.sum()))
