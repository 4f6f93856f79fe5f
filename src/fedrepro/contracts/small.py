"""Small federations, problems and runs. Everything is float64: identities hold to 1e-12."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils import _pytree

from fedrepro.core import clients, parts
from fedrepro.core.algorithm import Algorithm, Cohort, Problem, State
from fedrepro.core.federation import Batches, Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import StrategyName, build
from fedrepro.core.params import Params, Uploads
from fedrepro.core.replicates import Participation, Plan, Replicate
from fedrepro.core.rounds import train
from fedrepro.core.task import Task

EXPERIMENT = "test/tiny"
FULL_BATCH = LocalWork(epochs=2)
MINI_BATCH = LocalWork(epochs=2, batch=3)
#: clients whose last batch of three is short (5, 8), exact (6), or whose data is one batch or less (3, 2)
RAGGED = (5, 3, 8, 6, 2, 5)


# --- data -----------------------------------------------------------------------------------------------------------


def holdings(samples: Samples, sizes: Sequence[int], start: int = 0) -> Holdings:
    """Rows start, start + 1, … of `samples`, client after client."""
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    return Holdings(samples, np.arange(start, start + offsets[-1]), offsets)


def federations(model: str, sizes: Mapping[int, Sequence[int]], features: int = 3) -> dict[int, Federation]:
    """One random federation per seed, all on one `Samples` as in a job. Clients differ."""
    rng = np.random.default_rng(20)
    total = sum(map(sum, sizes.values()))
    owner = np.concatenate([np.repeat(np.arange(len(s)), s) for s in sizes.values()])
    example = parts.model(model).example
    shape = (features,) if example.inputs == (3,) else example.inputs
    x: np.ndarray = rng.normal(size=(total, *shape)) + 0.3 * owner.reshape(-1, *[1] * len(shape))
    x = rng.integers(0, 3, x.shape) if example.symbols else x
    if parts.model(model).objective == "cross_entropy":
        y: np.ndarray = rng.integers(0, 3, total)
    else:
        y = x @ rng.normal(size=shape[0]) + 0.5 * owner + rng.normal(size=total)
    samples = Samples(torch.from_numpy(x), torch.from_numpy(y))
    starts = np.cumsum([0, *map(sum, sizes.values())])[:-1]
    return {seed: Federation(holdings(samples, sizes[seed], at)) for seed, at in zip(sizes, starts, strict=True)}


# --- runs -----------------------------------------------------------------------------------------------------------


class SmallTask(Task):
    """`start` holds its initial parameters, because each gradient loads other ones into the module."""

    start: Params


def make_task(model: str, features: int = 3, outputs: int | None = None, **hyper: Any) -> SmallTask:
    make = parts.model(model)
    inputs = (features,) if make.example.inputs == (3,) else make.example.inputs
    outputs = make.example.outputs if outputs is None else outputs
    module = build(make, inputs, outputs, torch.Generator().manual_seed(7), **{**make.example.hyper, **hyper})
    task = SmallTask(module.to(torch.float64))
    task.start = task.parameters()
    return task


def make_problem(task: Task, federation: Federation, plan: Plan) -> Problem:
    steps = max(plan.work.steps_for(size)[0] for size in federation.train.sizes.tolist())
    return Problem(task, federation, plan.participation.shares(federation), steps, rounds=plan.rounds)


def make_plan(rounds: int = 3, work: LocalWork = FULL_BATCH, weights: str = "size", **options: Any) -> Plan:
    """`clients` and `sampling` go to the participation, the other options to the plan."""
    who = {k: options.pop(k) for k in ("clients", "sampling") if k in options}
    return Plan(EXPERIMENT, rounds, work, Participation(weights=weights, **who), **options)


def make_replicates(
    task: Task,
    by_seed: Mapping[int, Federation] | Federation,
    plan: Plan,
    *algorithms: Algorithm,
    w: Params | None = None,
) -> list[Replicate]:
    """One replicate per algorithm (setting) and seed. All start from `w`, or from `task.start`."""
    by_seed = {0: by_seed} if isinstance(by_seed, Federation) else by_seed
    w = task.start if w is None and isinstance(task, SmallTask) else w
    assert w is not None, "a task without a start needs a model to start from"
    problems = {seed: make_problem(task, federation, plan) for seed, federation in by_seed.items()}
    return [
        Replicate(f"setting {i}" if len(algorithms) > 1 else "", seed, a.resolve(problem), problem, w)
        for i, a in enumerate(algorithms)
        for seed, problem in problems.items()
    ]


@dataclass
class Run:
    """The replicates, the log and the counts of a run."""

    replicates: list[Replicate]
    frame: pd.DataFrame
    counts: dict[str, int]

    @property
    def only(self) -> Replicate:
        (replicate,) = self.replicates
        return replicate

    @property
    def w(self) -> Params:
        """The server's model of the only replicate."""
        return self.only.state["w"]

    def values(self, metric: str, **where: Any) -> np.ndarray:
        """One metric's values, in the order of the rounds."""
        keep = self.frame["metric"] == metric
        for column, value in where.items():
            keep &= self.frame[column] == value
        return self.frame[keep]["value"].to_numpy()

    def parquet(self) -> bytes:
        return self.frame.to_parquet(None, index=False)


def run(
    task: Task,
    by_seed: Mapping[int, Federation] | Federation,
    plan: Plan,
    *algorithms: Algorithm,
    w: Params | None = None,
    strategy: StrategyName = "loop",
    **options: Any,
) -> Run:
    """Train from the start. `options` go to `train` (checkpoint, progress)."""
    replicates = make_replicates(task, by_seed, plan, *algorithms, w=w)
    log, counts = train(task, replicates, plan, clients.strategy(strategy), **options)
    return Run(replicates, log.frame(EXPERIMENT, type(algorithms[0]).__name__.lower()), counts)


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


# --- observers ------------------------------------------------------------------------------------------------------


class GradientCounter:
    """Counts, in a `with` block, gradient evaluations through `Task`: one per client and step, also where clients are
    computed together."""

    def __init__(self) -> None:
        self.calls = self.evaluations = 0  # of the function; one per client and step
        self._inside = False

    def __enter__(self) -> Self:
        names = ("gradient", "gradient_and_loss")
        self._patches = [mock.patch.object(Task, name, self._counting(getattr(Task, name))) for name in names]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def counted(task: Task, w: Params, batch: Any, of: Any = None) -> Any:
            if self._inside:  # `gradient` may go through `gradient_and_loss`
                return function(task, w, batch, of)
            self.calls += 1
            self.evaluations += _stacked_clients((w, batch))
            self._inside = True
            try:
                return function(task, w, batch, of)
            finally:
                self._inside = False

        return counted


def _stacked_clients(tree: Any) -> int:
    """The number of clients in a call inside vmap: the size of a tensor's memory over its visible size."""

    def behind(leaf: Tensor) -> int:
        inside = leaf
        while torch._C._functorch.is_batchedtensor(inside):
            inside = torch._C._functorch.get_unwrapped(inside)
        return inside.numel() // leaf.numel()

    return max(map(behind, tensors(tree)), default=1)


def spying(algorithm: Algorithm, seen: list[dict[str, Any]]) -> Algorithm:
    """The algorithm, which appends every client update and server update to `seen`."""

    def client_update(self: Any, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        seen.append({"what": "client", "round": batches.round, "message": message, "batches": batches})
        return super(spy, self).client_update(task, message, local, batches)

    def server_update(self: Any, state: State, uploads: Uploads[Any], cohort: Cohort) -> State:
        seen.append({"what": "server", "round": cohort.round, "cohort": cohort})
        return super(spy, self).server_update(state, uploads, cohort)

    spy: Any = type(
        f"Spying{type(algorithm).__name__}",
        (type(algorithm),),
        {"client_update": client_update, "server_update": server_update},
    )
    copy: Algorithm = object.__new__(spy)
    copy.__dict__.update(vars(algorithm))
    return copy
