"""Separate (thesis §4.6): every device fits its own Gaussian process with FGPR's steps, and nothing is shared.

Batches and number of steps are FGPR's, the published budget; gp_maximum.py goes to convergence. `moments: keep` is the
released code, one run of Adam; `reset` starts it anew in every round, as in FGPR. With `newcomers` these train like the
others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedrepro.core.algorithm import Metric, Problem, State, Trial, one_of
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR


@dataclass(frozen=True)
class GPSeparate(FGPR):
    moments: str = one_of("reset", "reset", "keep")

    trial: ClassVar[Trial] = Trial(
        ({"lr": 0.05}, {"lr": 0.05, "moments": "keep"}, {"lr": 0.02, "optimiser": "sgd", "scale": "natural"}),
        cases=("gaussian process, mini-batch", "gaussian process, full batch"),
    )

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return w if self.moments == "reset" else {"w": w, "moments": [w * 0.0, w * 0.0]}

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        return clients

    def client_update(self, task: Task, message: Params, local: Any, batches: Batches) -> tuple[Params, Any]:
        if self.moments == "reset":
            w, _ = self.steps(task, local, batches)
            return w, w
        w, moments = self.steps(task, local["w"], batches, tuple(local["moments"]))
        return w, {"w": w, "moments": list(moments)}

    def model(self, state: State, local: Any, client: int) -> Params:
        if local is None:
            w: Params = state["w"]
            return w
        return local if self.moments == "reset" else local["w"]

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield Metric("uploaded", 0.0)
