"""TERM-Group (Li, Beirami, Sanjabi, Smith 2021, §2.3, hierarchical tilting): TERM between groups of devices.

The tilt e^{tL_i} uses the group's mean loss L_i, so all devices of a group have the same weight (no tilt inside a
group). L_i is the mean of the losses that the devices of the group last sent. Without groups this is TERM.
"""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedrepro.algorithms.term import TERM
from fedrepro.core.algorithm import Cohort, Problem, State, Trial
from fedrepro.core.params import Params
from fedrepro.studies.gifair.algorithms.gifair_global import no_losses
from fedrepro.studies.gifair.ranks import group_means


@dataclass(frozen=True)
class TERMGroup(TERM):
    label: ClassVar[str] = "TERM-Group"
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "t": 0.1}, {"lr": 0.1, "t": 0.05}))

    def init(self, problem: Problem, w: Params) -> State:
        return {**super().init(problem, w), **no_losses(problem)}

    def tilted(self, state: State, losses: Tensor, cohort: Cohort) -> tuple[State, Tensor]:
        last, known, group = state["losses"].clone(), state["known"].clone(), state["group"]
        last[cohort.clients], known[cohort.clients] = losses, True
        means, _ = group_means(last, known, group)
        return {**state, "losses": last, "known": known}, means[group[cohort.clients]]
