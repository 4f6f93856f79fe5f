"""GIFAIR-FL-Per (thesis, Algorithm 2.3): the steps of GIFAIR-FL-Global, but each device keeps its own last local model.

Algorithms 2.2 and 2.3 send and compute the same: 2.2 already ranks by the losses of the local models. They return θ̄
and {θ_k}, with θ_k from the round in which device k last took part (never: the server's). λ = 0 is therefore FedAvg
whose devices use their last local models. ranks: exact is refused: the losses that clients send are those of (2.5).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from fedrepro.core.algorithm import State, Trial
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal


@dataclass(frozen=True)
class GIFAIRPer(GIFAIRGlobal):
    label: ClassVar[str] = "GIFAIR-FL-Per"
    trial: ClassVar[Trial] = Trial(({"lr": 0.05, "fraction": 0.9}, {"lr": 0.1, "fraction": 0.4}))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.ranks == "stale", "ranks", "GIFAIR-FL-Per ranks by the losses of the local models")

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        (w, loss), _ = super().client_update(task, message, None, batches)
        return (w, loss), w

    def model(self, state: State, local: Any, client: int) -> Params:
        return state["w"] if local is None else local
