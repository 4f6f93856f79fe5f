"""FedSGD as the Omni-Fedge authors' code (paper 001) runs it: each node has its own initialisation, or a model trained
on its own data (`local_epochs`, see `omni_fedge_authors`), sends the gradient at its own model, and every node then
subtracts the same average. The initial differences of the nodes' models remain, so there never is the one model of
FedSGD.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.algorithm import Cohort, Problem, State, Trial, not_negative
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.studies.omni.algorithms.omni_fedge_authors import own_models


@dataclass(frozen=True)
class FedSGDAuthors(FedSGD):
    local_epochs: int = not_negative(0)  # of local training before the first round
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1, "queries": 0}))

    def init(self, problem: Problem, w: Params) -> State:
        return {"models": own_models(problem, w, self.local_epochs)}

    def message(self, state: State, client: int) -> Any:
        return self.model(state, None, client)

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        mean = weighted_sum(uploads, cohort.weights)
        return {"models": Params({k: v - self.lr * mean[k] for k, v in state["models"].items()})}

    def model(self, state: State, local: Any, client: int) -> Params:
        return Params({k: v[max(client, 0)] for k, v in state["models"].items()})
