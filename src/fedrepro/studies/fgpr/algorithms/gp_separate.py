"""Separate (thesis §4.6): every device fits its own Gaussian process with FGPR's steps, and nothing is shared.

Batches and number of steps are FGPR's, the published budget; gp_maximum.py goes to convergence. With `newcomers` these
train like the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedrepro.core.algorithm import Metric, Problem, State, Trial
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR


@dataclass(frozen=True)
class GPSeparate(FGPR):
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05}, {"lr": 0.02, "optimiser": "sgd", "scale": "natural"}),
        cases=("gaussian process, mini-batch", "gaussian process, full batch"),
    )

    def init_client(self, problem: Problem, client: int, w: Params) -> Params:
        return w

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        return clients

    def client_update(self, task: Task, message: Params, local: Params, batches: Batches) -> tuple[Params, Params]:
        w, _ = super().client_update(task, local, local, batches)
        return w, w

    def model(self, state: State, local: Params | None, client: int) -> Params:
        return state["w"] if local is None else local

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield Metric("uploaded", 0.0)
