"""FedPer (Arivazhagan et al. 2019, Algorithms 1 and 2) and FedRep (Collins et al. 2021, Algorithm 1): the clients share
the layers before the last and keep the last, their head, to themselves (the parameters a model declares as `own`).

A round: clients train the server's layers with their own head, and the server averages the layers they return. With
`head_steps` = 0 the local steps move both (FedPer). Otherwise the first `head_steps` of them move the head alone, the
others the shared layers alone (FedRep). For a model without own parameters FedPer is FedAvg.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Problem, State, Trial, not_negative
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params
from fedrepro.core.task import Task
from fedrepro.errors import UserError


@dataclass(frozen=True)
class FedPer(FedAvg):
    head_steps: int = not_negative(0)
    label: ClassVar[str] = "FedPer"
    trial: ClassVar[Trial] = Trial(({"lr": 0.05}, {"lr": 0.1}))

    def resolve(self, problem: Problem) -> Self:
        if self.head_steps and not problem.task.model.own:
            without = f"the model {type(problem.task.model).__name__} has no parameters that are a client's own"
            raise UserError(f"FedPer: head_steps = {self.head_steps}: {without}")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        shared, head = parted(problem.task, w)
        return {"w": shared, "head": head}

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        return parted(problem.task, w)[1] or None

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        w = Params({**message, **(local or {})}).clone()
        shared, head = (list(part) for part in parted(task, w))
        for t, batch in enumerate(batches):
            names = None if not self.head_steps else head if t < self.head_steps else shared
            g = task.gradient(w, batch, of=names)
            w = Params({**w, **Params({name: w[name] for name in names or w}).descend(g, self.step(batches, t))})
        upload, kept = parted(task, w)
        return upload, kept or None

    def model(self, state: State, local: Any, client: int) -> Params:
        return Params({**state["w"], **(local or state["head"])})


def parted(task: Task, w: Params) -> tuple[Params, Params]:
    """(the shared parameters, a client's own)."""
    own = task.model.own
    return Params({k: v for k, v in w.items() if k not in own}), Params({k: w[k] for k in own})
