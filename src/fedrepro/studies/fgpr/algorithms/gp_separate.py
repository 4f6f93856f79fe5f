"""Separate (thesis §4.6): every device fits a Gaussian process of its own with FGPR's steps, and nothing is shared.

It takes the same batches and as many steps as in FGPR: the published budget. What these steps do not reach is in
gp_maximum.py. With `newcomers` these train as the others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedrepro.core.algorithm import Metric, Trial
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR


@dataclass(frozen=True)
class GPSeparate(FGPR):
    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05}, {"lr": 0.02, "optimiser": "sgd", "scale": "natural"}),
        cases=("gaussian process, mini-batch", "gaussian process, full batch"),
    )

    def init_client(self, problem, client, w):
        return w

    def participants(self, state, clients):
        return clients

    def client_update(self, task, message, local, batches):
        w, _ = super().client_update(task, local, local, batches)
        return w, w

    def model(self, state, local, client):
        return state["w"] if local is None else local

    def metrics(self, problem, state, round):
        yield Metric("uploaded", 0.0)
