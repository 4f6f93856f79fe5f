"""Federated SGLD twice, from two starts, with the same mini-batches and the same noise: a synchronous coupling.

By Theorem 5.2 ("SGLD for noise-intrinsic federated learning") the laws of (x_i, x₀, λ_i) from any two starts approach
each other exponentially in a Wasserstein distance, which the mean distance of two coupled runs bounds from above (the
paper's proof reflects the noise instead, and has its own metric). The second run starts at −twin·w₀, its duals at 0;
`twin` = 0: no second run. Recorded each round: ‖x₀ − x₀'‖, ‖λ − λ'‖ over all nodes, and `distance`,
√(N·‖x₀ − x₀'‖² + ‖λ − λ'‖²/γ²). The first run is evaluated and stored.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.core.algorithm import Cohort, Metric, Problem, State, Trial
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.studies.sgld.algorithms.fed_sgld import FedSGLD


@dataclass(frozen=True)
class FedSGLDCoupled(FedSGLD):
    twin: float = 0.0
    server_only = FedSGLD.server_only | {"twin"}
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "beta": 0.01, "burn_in": 1}, {"lr": 0.1, "clip": 2.0}))

    def init(self, problem: Problem, w: Params) -> State:
        state = super().init(problem, w)
        return state | {"both": [w, w * -self.twin], "apart": (1 + self.twin) * w.norm()} if self.twin else state

    def message(self, state: State, client: int) -> Any:
        return state["both"] if self.twin else state["w"]

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        local = super().init_client(problem, client, w)
        return [local, super().init_client(problem, client, w * -self.twin)] if self.twin else local

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        update = super().client_update
        if isinstance(message, Params):
            return update(task, message, local, batches)
        results = [update(task, x0, own, batches) for x0, own in zip(message, local, strict=True)]
        return [upload for upload, _ in results], [own for _, own in results]

    def server_update(self, state: State, uploads: Uploads, cohort: Cohort) -> State:
        if not self.twin:
            return super().server_update(state, uploads, cohort)
        runs = zip(state["both"], uploads.stack(), strict=True)
        first, second = (self.aggregate(w, uploaded, cohort) for w, uploaded in runs)
        apart = {"apart": (first["w"] - second["w"]).norm(), "duals_apart": (first["duals"] - second["duals"]).norm()}
        return {**state, **first, **apart, "both": [first["w"], second["w"]]}

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        yield from super().metrics(problem, state, round)
        if self.twin:
            x0, duals = float(state["apart"]), float(state.get("duals_apart", 0.0))
            yield Metric("distance_x0", x0)
            yield Metric("distance_dual", duals)
            yield Metric("distance", math.sqrt(len(problem.federation) * x0**2 + (duals / self.gamma) ** 2))
