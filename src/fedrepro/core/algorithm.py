"""What an algorithm is: hyper-parameters, and three functions in the order of the papers' boxes.

`init` makes the server's state, `client_update` is what one client does with the server's message,
`server_update` is what the server does with the clients' uploads. The loop over rounds, client sampling,
evaluation, logging, checkpoints and divergence are the engine's (`fedrepro.core.rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, get_type_hints

import numpy as np
import torch

from fedrepro.core.federation import Batches, Federation
from fedrepro.core.model import Assessment, Quadratic
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.errors import UserError

State = dict[str, Any]  # Params, tensors, numbers, and lists and dicts of these: what a checkpoint can hold


@dataclass(frozen=True)
class Problem:
    """One seed's problem: the task, who holds what, and p_k, the weight of each client (sums to 1)."""

    task: Task
    federation: Federation
    weights: np.ndarray
    steps: int  # local gradient steps in a round, of the client with most of them
    initial: Callable[[int], Params] | None = None  # client → an initial model of its own, for methods that want one
    rounds: int = 1  # of the whole run, for schedules that look ahead

    _whole: dict[int, object] = field(default_factory=dict, repr=False, compare=False)
    _summaries: dict[str, Quadratic] = field(default_factory=dict, repr=False, compare=False)

    def whole(self, client: int) -> object:
        """The client's full batch, or what the task summarises it to; made once."""
        if client not in self._whole:
            self._whole[client] = self.task.model.summarise(self.federation.train.full_batch(client))
        return self._whole[client]

    def summaries(self, split: str) -> Quadratic:
        """What each client's rows of a split come down to, stacked; for models that summarise, made once."""
        if split not in self._summaries:
            holdings = getattr(self.federation, split)
            each = [
                self.whole(k) if split == "train" else self.task.model.summarise(holdings.full_batch(k))
                for k in range(len(holdings))
            ]
            self._summaries[split] = Quadratic(*(torch.stack(part) for part in zip(*each, strict=True)))
        return self._summaries[split]

    @cached_property
    def groups(self) -> tuple[list[str], torch.Tensor]:
        """(names of the groups, s_k [K]); each client its own group where the federation has none."""
        of = self.federation.groups or tuple(map(str, range(len(self.federation))))
        place = {name: i for i, name in enumerate(dict.fromkeys(of))}
        return list(place), torch.tensor([place[name] for name in of])

    @cached_property
    def quadratics(self) -> Quadratic | None:
        """The clients' full-batch objectives where these are quadratic: H [K, d, d], b [K, d], c [K]; else None."""
        if not isinstance(self.whole(0), Quadratic):
            return None
        whole = [self.whole(k) for k in range(len(self.federation))]
        return Quadratic(*(torch.stack(part) for part in zip(*whole, strict=True)))

    @cached_property
    def minimiser(self) -> torch.Tensor | None:
        """argmin of the plain mean of the clients' objectives where these are quadratic: [d]; else None."""
        return None if self.quadratics is None else self.quadratics.minimiser()


class Cohort(NamedTuple):
    """A round's clients, in ascending order, and the weight of each in the server's sum."""

    round: int
    clients: np.ndarray
    weights: np.ndarray


class Traffic(NamedTuple):
    """Bytes from the server to clients and from clients to the server."""

    down: int = 0
    up: int = 0

    def plus(self, other: Traffic) -> Traffic:
        return Traffic(self.down + other.down, self.up + other.up)


class Metric(NamedTuple):
    """One number that an algorithm wants recorded."""

    metric: str
    value: float
    split: str = ""
    client: int = -1
    group: str = ""
    step: int = 0


def pairs(name: str, matrix: torch.Tensor) -> Iterator[Metric]:
    """A matrix [i, j] as metrics of client i with step j."""
    for i, line in enumerate(matrix.tolist()):
        for j, value in enumerate(line):
            yield Metric(name, value, client=i, step=j)


class Trial(NamedTuple):
    """How the contract tests run a method: settings that suit any small federation, the cases it can run where it asks
    for a special model (empty: all of them), and its gradients per client and round where they are not one per batch."""

    settings: tuple[Mapping[str, Any], ...] = ({},)
    cases: tuple[str, ...] = ()
    gradients: int | None = None


def limited(default: Any, holds: Callable[[Any], bool], rule: str) -> Any:
    """A hyper-parameter whose value must hold a rule, unless it is None."""
    return field(default=default, metadata={"holds": holds, "rule": rule})


def positive(default: float | None, rule: str = "must be positive") -> Any:
    return limited(default, lambda value: value > 0, rule)


def not_negative(default: float | None, rule: str = "must not be negative") -> Any:
    return limited(default, lambda value: value >= 0, rule)


def one_of(default: str, *valid: str) -> Any:
    """A hyper-parameter that names one of several ways; the first is not always the default."""
    return limited(default, lambda value: value in valid, f"one of {', '.join(valid)}")


@dataclass(frozen=True)
class Algorithm:
    """Base of all methods. Subclasses are frozen dataclasses whose fields are the hyper-parameters."""

    #: hyper-parameters that `client_update` never reads: settings that differ only in them are stacked
    server_only: ClassVar[frozenset[str]] = frozenset()
    #: exchanges with the server in a round: each is a message, `client_update` and `server_update`
    exchanges: ClassVar[int] = 1
    #: whether `client_update` reads `batches.noise`
    noisy: ClassVar[bool] = False
    #: False: `init` computes the result and there are no rounds (a centralised fit, a closed form)
    iterative: ClassVar[bool] = True
    #: the method's name in figures and tables; without one, the name of its file
    label: ClassVar[str] = ""
    trial: ClassVar[Trial] = Trial()

    def __post_init__(self) -> None:
        bases = [base for base in reversed(type(self).__mro__) if is_dataclass(base)]
        limits = {f.name: f.metadata for base in bases for f in fields(base) if f.metadata}  # a new default keeps them
        for name, limit in limits.items():
            if (value := getattr(self, name)) is not None:
                self.require(limit["holds"](value), name, limit["rule"])

    @classmethod
    def from_config(cls, hyper: dict[str, Any]) -> Self:
        """From a config file's values: YAML writes 1 for 1.0."""
        hints = get_type_hints(cls)
        return cls(**{k: float(v) if hints[k] is float else v for k, v in hyper.items()})

    def resolve(self, problem: Problem) -> Self:
        """The algorithm with what depends on the data filled in (a step as a fraction of its largest value, …)."""
        return self

    def init(self, problem: Problem, w: Params) -> State:
        """The server's state before the first round, from the common initial model."""
        return {"w": w}

    @classmethod
    def init_all(cls, runs: Sequence[tuple[Self, Problem, Params]]) -> list[State]:
        """`init` of all replicates of a job; for methods that compute several at once."""
        return [algorithm.init(problem, w) for algorithm, problem, w in runs]

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        """Those of the sampled clients that can be reached."""
        return clients

    def survey(self, problem: Problem, state: State) -> tuple[State, Traffic]:
        """What the server asks of all clients before a round, sampled or not, and what that sends; most ask nothing."""
        return state, Traffic()

    def message(self, state: State, client: int) -> Any:
        """What the server sends to a client. One object for all clients is not copied."""
        return state["w"]

    def messages(self, state: State, clients: np.ndarray) -> Iterable[Any]:
        """`message` of each of the clients. A method overrides this one instead where it cuts all of them at once."""
        return (self.message(state, k) for k in clients.tolist())

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        """A client's own state, kept between rounds; None where the method has none."""
        return None

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        """(upload, new local state) of one client. Pure: no randomness, no side effect."""
        raise NotImplementedError

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        """The new state. `uploads` come in the order of `cohort.clients`."""
        raise NotImplementedError

    def model(self, state: State, local: Any, client: int) -> Params:
        """The model that a client would use now."""
        w: Params = state["w"]
        return w

    def metrics(self, problem: Problem, state: State, round: int) -> Iterable[Metric]:
        """Numbers of the method's own, recorded after initialisation (round 0) and after every round."""
        return ()

    def client_metrics(self, problem: Problem, local: Any, client: int) -> Iterable[Metric]:
        """Numbers of a client's own, from what it keeps; recorded with its losses (`evaluate.clients`)."""
        return ()

    def noise_width(self, parameters: int) -> int:
        """Random numbers per step, for a `noisy` method that does not want one per parameter."""
        return parameters

    def require(self, condition: bool, key: str, rule: str) -> None:
        """Check one hyper-parameter; the error names the algorithm, the key, its value and the rule."""
        if not condition:
            raise UserError(f"{type(self).__name__}: {key} = {getattr(self, key)!r}: {rule}")


@dataclass(frozen=True)
class Predictor(Algorithm):
    """A method whose result is no model of the task's: a centralised predictor."""

    def assess(self, problem: Problem, state: State, split: str) -> Assessment | None:
        """The assessment of all clients on a split; None: the split is not evaluated."""
        raise NotImplementedError
