"""Algorithms: hyper-parameters, and three functions in the order of the papers' boxes.

`init` makes the server's state, `client_update` turns the server's message into one client's upload, `server_update`
turns the uploads into the next state. The engine (`fedrepro.core.rounds`) does everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property
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
    steps: int  # local gradient steps per round of the client with most of them
    initial: Callable[[int], Params] | None = None  # client → an initial model of its own
    rounds: int = 1  # of the whole run

    _whole: dict[int, object] = field(default_factory=dict, repr=False, compare=False)
    _summaries: dict[str, Quadratic] = field(default_factory=dict, repr=False, compare=False)

    def whole(self, client: int) -> object:
        """The client's full batch or its summary, made once."""
        if client not in self._whole:
            self._whole[client] = self.task.model.summarise(self.federation.train.full_batch(client))
        return self._whole[client]

    def summaries(self, split: str) -> Quadratic:
        """The summaries of each client's rows of a split, stacked; made once."""
        if split not in self._summaries:
            holdings = getattr(self.federation, split)
            summary = self.whole if split == "train" else lambda k: self.task.model.summarise(holdings.full_batch(k))
            each = zip(*map(summary, range(len(holdings))), strict=True)
            self._summaries[split] = Quadratic(*map(torch.stack, each))
        return self._summaries[split]

    @cached_property
    def groups(self) -> tuple[list[str], torch.Tensor]:
        """(names of the groups, s_k [K]); without groups each client is its own."""
        of = self.federation.groups or tuple(map(str, range(len(self.federation))))
        place = {name: i for i, name in enumerate(dict.fromkeys(of))}
        return list(place), torch.tensor([place[name] for name in of])

    @cached_property
    def quadratics(self) -> Quadratic | None:
        """The clients' full-batch objectives if quadratic: H [K, d, d], b [K, d], c [K]; else None."""
        return self.summaries("train") if isinstance(self.whole(0), Quadratic) else None

    @cached_property
    def minimiser(self) -> torch.Tensor | None:
        """argmin of the plain mean of the clients' objectives if quadratic: [d]; else None."""
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
    """One number to record."""

    metric: str
    value: float
    split: str = ""
    client: int = -1
    group: str = ""
    step: int = 0


def pairs(name: str, matrix: torch.Tensor) -> Iterator[Metric]:
    """A matrix [i, j] as metrics of client i with step j."""
    return (Metric(name, v, client=i, step=j) for i, line in enumerate(matrix.tolist()) for j, v in enumerate(line))


class Trial(NamedTuple):
    """How the contract tests run a method: settings for any small federation, the cases it can run (empty: all), and
    its gradients per client and round if not one per batch."""

    settings: tuple[Mapping[str, Any], ...] = ({},)
    cases: tuple[str, ...] = ()
    gradients: int | None = None


def limited(default: Any, holds: Callable[[Any], bool], rule: str) -> Any:
    """A hyper-parameter whose value must be None or fulfil a rule."""
    return field(default=default, metadata={"holds": holds, "rule": rule})


def positive(default: float | None, rule: str = "must be positive") -> Any:
    return limited(default, lambda value: value > 0, rule)


def not_negative(default: float | None, rule: str = "must not be negative") -> Any:
    return limited(default, lambda value: value >= 0, rule)


def one_of(default: str, *valid: str) -> Any:
    return limited(default, lambda value: value in valid, f"one of {', '.join(valid)}")


_hints: Callable[[type], dict[str, Any]] = cache(get_type_hints)


@dataclass(frozen=True)
class Algorithm:
    """Base of all methods. Subclasses are frozen dataclasses whose fields are the hyper-parameters."""

    #: hyper-parameters that `client_update` never reads: settings that differ only in them are stacked
    server_only: ClassVar[frozenset[str]] = frozenset()
    exchanges: ClassVar[int] = 1  # per round, each a message, `client_update` and `server_update`
    noisy: ClassVar[bool] = False  # whether `client_update` reads `batches.noise`
    iterative: ClassVar[bool] = True  # False: `init` computes the result, without rounds
    label: ClassVar[str] = ""  # in figures and tables; without one, the name of the file
    trial: ClassVar[Trial] = Trial()

    def __post_init__(self) -> None:
        bases = [base for base in reversed(type(self).__mro__) if is_dataclass(base)]
        limits = {f.name: f.metadata for base in bases for f in fields(base) if f.metadata}  # a new default keeps them
        for name, limit in limits.items():
            if (value := getattr(self, name)) is not None:
                self.require(limit["holds"](value), name, limit["rule"])

    @classmethod
    def from_config(cls, hyper: dict[str, Any]) -> Self:
        """From the values of a config file, where 1 may mean 1.0."""
        hints = _hints(cls)
        return cls(**{k: float(v) if hints[k] is float else v for k, v in hyper.items()})

    def resolve(self, problem: Problem) -> Self:
        """The algorithm with values that depend on the data (a step as a fraction of its largest value, …)."""
        return self

    def init(self, problem: Problem, w: Params) -> State:
        """The server's initial state, from the common initial model."""
        return {"w": w}

    @classmethod
    def groups(cls, runs: Sequence[tuple[Self, Problem, Params]]) -> list[list[int]]:
        """The places of the runs that `init_all` computes at once: each alone."""
        return [[i] for i in range(len(runs))]

    @classmethod
    def init_all(cls, runs: Sequence[tuple[Self, Problem, Params]]) -> list[State]:
        """`init` of one of the `groups` of replicates, for methods that compute several at once."""
        return [algorithm.init(problem, w) for algorithm, problem, w in runs]

    def participants(self, state: State, clients: np.ndarray) -> np.ndarray:
        """The sampled clients that can be reached."""
        return clients

    def survey(self, problem: Problem, state: State) -> tuple[State, Traffic]:
        """The state after asking all clients, sampled or not, before a round, and the bytes of that."""
        return state, Traffic()

    def message(self, state: State, client: int) -> Any:
        """The server's message to a client. One object for all clients is not copied."""
        return state["w"]

    def messages(self, state: State, clients: np.ndarray) -> Iterable[Any]:
        """`message` of each client; for methods that make all of them at once."""
        return (self.message(state, k) for k in clients.tolist())

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        """A client's own state, kept between rounds; None if the method has none."""
        return None

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        """(upload, new local state) of one client. Pure: no randomness, no side effect."""
        raise NotImplementedError

    def server_update(self, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        """The new state. `uploads` come in the order of `cohort.clients`."""
        raise NotImplementedError

    def model(self, state: State, local: Any, client: int) -> Params:
        """The model in use at a client."""
        w: Params = state["w"]
        return w

    def metrics(self, problem: Problem, state: State, round: int) -> Iterable[Metric]:
        """The method's own numbers, recorded after initialisation (round 0) and after every round."""
        return ()

    def client_metrics(self, problem: Problem, local: Any, client: int) -> Iterable[Metric]:
        """A client's own numbers, from its state; recorded with its losses (`evaluate.clients`)."""
        return ()

    def noise_width(self, parameters: int) -> int:
        """Random numbers per step of a `noisy` method."""
        return parameters

    def require(self, condition: bool, key: str, rule: str) -> None:
        """Check one hyper-parameter; the error names the algorithm, the key, its value and the rule."""
        if not condition:
            raise UserError(f"{type(self).__name__}: {key} = {getattr(self, key)!r}: {rule}")


@dataclass(frozen=True)
class Predictor(Algorithm):
    """A centralised predictor, whose result is no model of the task."""

    def assess(self, problem: Problem, state: State, split: str) -> Assessment | None:
        """Of all clients on a split; None: the split is not evaluated."""
        raise NotImplementedError
