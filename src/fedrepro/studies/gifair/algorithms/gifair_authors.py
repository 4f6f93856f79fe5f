"""GIFAIR-FL-Global as the authors' public code runs it (UMDataScienceLab/GIFAIR-FL), beside Algorithm 2.2.

Four differences: local steps have momentum, v ← ½ v + g, from v = 0 in each round; the loss that ranks is the mean of
the batches' losses *during* local training, not F_k at its end; before a device is first sampled its loss is a random
whole number from 0 to 99, so it outranks all that were sampled; and equal losses are ranked by the devices' order, so
no rank is shared. Their λ is λ_max/2. Not taken over: dropout, and a test split that depends on the order of the data
(`inside: {name: dealt}` is that one).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedrepro.core.algorithm import Problem, State, Trial, limited
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal
from fedrepro.studies.gifair.ranks import group_means

UNSEEN = 100  # initial losses are whole numbers below it


@dataclass(frozen=True)
class GIFAIRAuthors(GIFAIRGlobal):
    momentum: float = limited(0.5, lambda v: 0 <= v < 1, "must lie in [0, 1)")
    label: ClassVar[str] = "GIFAIR-FL-Global, authors' code"
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "fraction": 0.5}, {"lr": 0.02, "fraction": 0.9, "momentum": 0.0}))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.ranks == "stale", "ranks", "the authors' code ranks by the losses during training")

    def init(self, problem: Problem, w: Params) -> State:
        state = super().init(problem, w)
        random = torch.Generator().manual_seed(0)  # which device has which is random already, as its data are
        losses = torch.randint(UNSEEN, (len(state["group"]),), generator=random).double()
        known = torch.ones_like(state["known"])
        return {**state, "losses": losses, "known": known, "rank": self.ranked(losses, known, state["group"])}

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        theta, coefficient = message
        w, velocity, losses = theta.clone(), None, []
        for t, batch in enumerate(batches):
            g, loss = task.gradient_and_loss(w, batch)
            velocity = g if velocity is None else g.add(velocity, alpha=self.momentum)
            w = w.descend(velocity * (1 + coefficient), self.step(batches, t))
            losses.append(loss)
        return (w, torch.stack(losses).mean()), local

    def ranked(self, losses: Tensor, known: Tensor, group: Tensor) -> Tensor:
        means, _ = group_means(losses, known, group)
        rank = torch.empty_like(means)
        rank[torch.argsort(means, stable=True)] = 2 * torch.arange(len(means)).to(means) - (len(means) - 1)
        return rank[group]
