"""TERM-Group (Li, Beirami, Sanjabi, Smith 2021, §2.3, hierarchical tilting): TERM between groups of devices.

The tilt e^{tL_i} is of the group's mean loss L_i, so that all devices of a group weigh alike (no tilt inside a group).
L_i is over the devices of the group, each with the loss it last sent. Without groups this is TERM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedrepro.algorithms._weighed import group_index, group_means
from fedrepro.algorithms.term import TERM
from fedrepro.core.algorithm import Trial


@dataclass(frozen=True)
class TERMGroup(TERM):
    label: ClassVar[str] = "TERM-Group"
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "t": 0.1}, {"lr": 0.1, "t": 0.05}))

    def init(self, problem, w):
        _, group = group_index(problem)
        clients = len(group)
        nothing = {"losses": torch.zeros(clients, dtype=torch.float64), "known": torch.zeros(clients, dtype=torch.bool)}
        return {**super().init(problem, w), "group": group, **nothing}

    def tilted(self, state, losses, cohort):
        last, known, group = state["losses"].clone(), state["known"].clone(), state["group"]
        last[cohort.clients], known[cohort.clients] = losses, True
        means, _ = group_means(last, known, group)
        return {**state, "losses": last, "known": known}, means[group[cohort.clients]]
