"""FedAvg (McMahan et al. 2017, Algorithm 1): clients run SGD from the server's model, the server averages.

The engine sets the weights: p_k over all clients; of sampled ones a plain average if drawn with probability p_k, and
K/|S| · p_k if drawn uniformly (thesis, Remark 4).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Cohort, State, Trial, limited, positive
from fedrepro.core.federation import Batch, Batches
from fedrepro.core.params import Params, Uploads, weighted_sum
from fedrepro.core.task import Task


@dataclass(frozen=True)
class FedAvg(Algorithm):
    lr: float = positive(0.1, "the step must be positive")
    decay: float = limited(1.0, lambda v: 0 < v <= 1, "must lie in (0, 1]")  # the step is lr · decay^round
    label: ClassVar[str] = "FedAvg"
    #: whether clients upload (w_k, F_k), with the training loss F_k at the server's model: for methods that weigh by it
    sends_loss: ClassVar[bool] = False
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "decay": 0.9}, {"lr": 0.1, "decay": 0.8}))

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        w = message.clone()
        for t, batch in enumerate(batches):
            g = self.direction(task, w, batch, message)
            w = w.descend(g, self.step(batches, t))
        return ((w, task.training_loss(message, batches)) if self.sends_loss else w), local

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        return {**state, "w": weighted_sum(uploads, cohort.weights)}

    def direction(self, task: Task, w: Params, batch: Batch, w_server: Params) -> Params:
        """The direction that a local step descends: ∇F_k(w)."""
        return task.gradient(w, batch)

    def step(self, batches: Batches, t: int) -> float | Tensor:
        """The length of local step t (from 0) of a round."""
        return self.rate(batches.round)

    def rate(self, round: int) -> float | Tensor:
        """lr · decay^round; in a grid over the decay a tensor, which must not be compared."""
        constant = isinstance(self.decay, float) and self.decay == 1.0
        return self.lr if constant else self.lr * self.decay**round
