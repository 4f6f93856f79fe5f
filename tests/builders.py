"""Small federations, problems and runs. Everything is float64, so that identities can be held to 1e-12."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils import _pytree

from fedrepro.algorithms import ALGORITHMS
from fedrepro.core import clients
from fedrepro.core.algorithm import Algorithm, Problem
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.initial import build
from fedrepro.core.params import Params
from fedrepro.core.rounds import Participation, Plan, Replicate, train
from fedrepro.core.task import Task
from fedrepro.models import MODELS

EXPERIMENT = "test/tiny"
FULL_BATCH = LocalWork(epochs=2)
MINI_BATCH = LocalWork(epochs=2, batch=3)
#: the samples of models that take more than a vector
SHAPES: dict[str, tuple[int, ...]] = {
    "char_lstm": (4,),
    "cnn": (1, 16, 16),
    "lenet5": (1, 28, 28),
    "omni_cnn": (1, 6, 6),
    "polynomial": (1,),
    "resnet9": (2, 32, 32),
}
#: what makes a model small, and a function of each sample alone
HYPER: dict[str, dict[str, Any]] = {"mlp": {"hidden": [4]}, "resnet9": {"width": 2, "norm": "group"}}
#: models whose samples are symbols, as many as there are outputs
SYMBOLS = ("char_lstm",)
#: models whose loss of a batch is no mean over its samples
NO_MEAN = ("gaussian_process",)
#: clients whose last batch of three is short (5, 8), exact (6), or whose data is one batch or less (3, 2)
RAGGED = (5, 3, 8, 6, 2, 5)
#: outputs of models whose outputs are targets, not classes
OUTPUTS: dict[str, int] = {"gaussian_process": 1, "linear_outputs": 1, "network": 1, "polynomial": 1}


def params(**values: Any) -> Params:
    return Params({k: torch.as_tensor(v, dtype=torch.float64) for k, v in values.items()})


# --- data -----------------------------------------------------------------------------------------------------------


def holdings(samples: Samples, sizes: Sequence[int], start: int = 0) -> Holdings:
    """Rows start, start + 1, … of `samples`, client after client."""
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    return Holdings(samples, np.arange(start, start + offsets[-1]), offsets)


def federate(*data: tuple[Any, Any], test: tuple[Any, Any] | None = None) -> Federation:
    """A federation from each client's (x, y); a global test set if given. Whole numbers in y are classes."""

    def together(pairs) -> Samples:
        x, y = (np.concatenate([np.asarray(pair[i]) for pair in pairs]) for i in (0, 1))
        return Samples(torch.as_tensor(x, dtype=torch.float64), torch.from_numpy(y))

    train_set = holdings(together(data), [len(y) for _, y in data])
    test_set = None if test is None else holdings(together([test]), [len(test[1])])
    return Federation(train_set, test=test_set)


def permuted(federation: Federation, order: Sequence[int]) -> Federation:
    """The same clients under other numbers."""
    mine = [federation.train.of(k) for k in order]
    offsets = np.cumsum([0, *map(len, mine)], dtype=np.int64)
    return Federation(Holdings(federation.train.samples, np.concatenate(mine), offsets))


def federations(model: str, sizes: Mapping[int, Sequence[int]], features: int = 3) -> dict[int, Federation]:
    """A random federation for each seed, all on one `Samples`, as a job has them. Clients differ."""
    rng = np.random.default_rng(20)
    total = sum(map(sum, sizes.values()))
    owner = np.concatenate([np.repeat(np.arange(len(s)), s) for s in sizes.values()])
    shape = SHAPES.get(model, (features,))
    x = rng.normal(size=(total, *shape)) + 0.3 * owner.reshape(-1, *[1] * len(shape))
    x = rng.integers(0, 3, x.shape) if model in SYMBOLS else x
    if MODELS[model].objective == "cross_entropy":
        y = rng.integers(0, 3, total)
    else:
        y = x @ rng.normal(size=shape[0]) + 0.5 * owner + rng.normal(size=total)
    samples = Samples(torch.from_numpy(x), torch.from_numpy(y))
    starts = np.cumsum([0, *map(sum, sizes.values())])[:-1]
    return {seed: Federation(holdings(samples, sizes[seed], at)) for seed, at in zip(sizes, starts, strict=True)}


# --- runs -----------------------------------------------------------------------------------------------------------


def make_task(model: str, features: int = 3, outputs: int | None = None, **hyper: Any) -> Task:
    """A task; `start` are the parameters it came with (each gradient points the one module at others)."""
    hyper = HYPER.get(model, {}) | hyper
    outputs = OUTPUTS.get(model, 3) if outputs is None else outputs
    module = build(MODELS[model], SHAPES.get(model, (features,)), outputs, torch.Generator().manual_seed(7), **hyper)
    task = Task(module.to(torch.float64))
    task.start = task.parameters()
    return task


def make_problem(task: Task, federation: Federation, plan: Plan) -> Problem:
    steps = max(plan.work.steps_for(size)[0] for size in federation.train.sizes.tolist())
    return Problem(task, federation, plan.participation.shares(federation), steps, rounds=plan.rounds)


def make_plan(rounds: int = 3, work: LocalWork = FULL_BATCH, weights: str = "size", **options: Any) -> Plan:
    """`clients` and `sampling` go to the participation, what is left to the plan."""
    who = {k: options.pop(k) for k in ("clients", "sampling") if k in options}
    return Plan(EXPERIMENT, rounds, work, Participation(weights=weights, **who), **options)


def make_replicates(
    task: Task,
    by_seed: Mapping[int, Federation] | Federation,
    plan: Plan,
    *algorithms: Algorithm,
    w: Params | None = None,
) -> list[Replicate]:
    """One replicate for each algorithm (setting) and seed; all of them start from `w`, or from `task.start`."""
    by_seed = {0: by_seed} if isinstance(by_seed, Federation) else by_seed
    w = task.start if w is None else w
    problems = {seed: make_problem(task, federation, plan) for seed, federation in by_seed.items()}
    return [
        Replicate(f"setting {i}" if len(algorithms) > 1 else "", seed, a.resolve(problem), problem, w)
        for i, a in enumerate(algorithms)
        for seed, problem in problems.items()
    ]


@dataclass
class Run:
    """What a run left behind."""

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
    strategy: str = "loop",
    **options: Any,
) -> Run:
    """Train from the start. `options` go to `train` (checkpoint, progress)."""
    replicates = make_replicates(task, by_seed, plan, *algorithms, w=w)
    log, counts = train(task, replicates, plan, clients.strategy(strategy), **options)
    return Run(replicates, log.frame(EXPERIMENT, type(algorithms[0]).__name__.lower()), counts)


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


# --- what the contract tests need to know of a method ---------------------------------------------------------------

#: settings that run on every small federation above; a method without an entry runs with its defaults
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "afl": [{"lr": 0.05, "gamma": 0.1}, {"lr": 0.1, "gamma": 0.01}],
    "dfl": [
        {"servers": 2, "server_steps": 2, "gamma": 0.004},
        {"servers": 3, "server_steps": 1, "gamma": 0.008, "graph": "path"},
    ],
    "ditto": [{"lr": 0.05, "strength": 0.5}, {"lr": 0.1, "strength": 0.1}],
    "fed_sgld": [
        {"lr": 0.05, "beta": 0.01, "clip": 5.0, "burn_in": 1, "decay": 1 / 3},
        {"lr": 0.1, "beta": 0.02, "clip": 2.0, "burn_in": 1, "average": 0.5},
    ],
    "fed_sgld_coupled": [{"lr": 0.05, "beta": 0.01, "burn_in": 1}, {"lr": 0.1, "clip": 2.0}],
    "fedavg": [{"lr": 0.05, "decay": 0.9}, {"lr": 0.1, "decay": 0.8}],
    "fedavg_transfer": [{"lr": 0.05}, {"lr": 0.1}],
    "fgpr": [{"lr": 0.05}, {"lr": 0.02, "optimiser": "sgd", "schedule": "inverse"}],
    "gp_separate": [{"lr": 0.05}, {"lr": 0.02, "optimiser": "sgd", "scale": "natural"}],
    "fedavg_matched": [{"lr": 0.1, "shape": "cosine"}, {"lr": 0.2, "count": "epochs"}],
    "fedpd": [{"lr": 0.05, "gamma": 0.5}, {"lr": 0.1, "start": "own"}],
    "fedpd_noisy": [{"lr": 0.05, "beta": 0.01, "clip": 5.0}, {"lr": 0.1, "beta": 0.02, "clip": 2.0, "account": True}],
    "fedmgda_plus": [{"lr": 0.05}, {"lr": 0.1, "epsilon": 0.2}],
    "fedprox": [{"lr": 0.05, "mu": 0.5}, {"lr": 0.1, "mu": 2.0}],
    "fedsgd": [{"lr": 0.05}, {"lr": 0.1}],
    "fedsgd_authors": [{"lr": 0.05}, {"lr": 0.1, "queries": 0}],
    "fedsgd_scaled": [{"lr": 0.01}, {"lr": 0.02}],
    "gifair_global": [{"lr": 0.05, "fraction": 0.9}, {"lr": 0.1, "fraction": 0.4, "ranks": "exact"}],
    "gifair_per": [{"lr": 0.05, "fraction": 0.9}, {"lr": 0.1, "fraction": 0.4}],
    "hm1": [{"lr": 0.01}, {"lr": 0.02, "gradient": "sum", "alpha": 0.5}],
    "hm2_ep": [{"prior": "lasso", "chains": 12}, {"prior": "ridge", "chains": 12, "damping": 0.8}],
    "hm2_newcomers": [{"noise": 0.5, "chains": 12}, {"noise": 0.7, "chains": 12, "prior": "normal_shared"}],
    "local": [{"lr": 0.05}, {"lr": 0.1}],
    "omni_fedge": [{"lr": 0.05, "head_lr": 0.1}, {"lr": 0.02, "head_lr": 0.05}],
    "omni_fedge_authors": [{"lr": 0.05}, {"lr": 0.1}],
    "sa": [{"lr": 0.1}, {"lr": 0.05, "mu": 0.5, "power": 0.76, "count": "steps"}],
    "sa_tracked": [{"lr": 0.05, "power": 0.6}, {"lr": 0.1}],
    "q_ffl": [{"lr": 0.05, "q": 1.0}, {"lr": 0.1, "q": 0.1}],
    "term": [{"lr": 0.05, "t": 0.1}, {"lr": 0.1, "t": 0.05}],
    "term_group": [{"lr": 0.05, "t": 0.1}, {"lr": 0.1, "t": 0.05}],
}
#: methods that ask for a model with parts that are a client's own, and the contract's cases that have one
CASES_OF: dict[str, tuple[str, ...]] = {
    "fgpr": ("gaussian process, mini-batch", "gaussian process, full batch"),
    "gp_separate": ("gaussian process, mini-batch", "gaussian process, full batch"),
    "hm2_ep": ("linear, full batch",),
    "hm2_newcomers": ("linear, full batch",),
    "omni_fedge": ("mlp, five steps",),
    "omni_fedge_authors": ("mlp, five steps",),
    "sa_tracked": ("linear, full batch", "linear, mini-batch"),
}
#: gradient evaluations of a client in a round of the case "mlp, five steps", where these are not one a batch
GRADIENTS_OF: dict[str, int] = {
    "ditto": 2 * 5,
    "hm2_ep": 0,
    "hm2_newcomers": 0,
    "omni_fedge": 1,
    "omni_fedge_authors": 2 * len(RAGGED),
    "sa_tracked": 2,
}


def settings_of(name: str) -> list[Algorithm]:
    return [ALGORITHMS[name].from_config(hyper) for hyper in SETTINGS.get(name, [{}])]


# --- observers ------------------------------------------------------------------------------------------------------


class GradientCounter:
    """Gradient evaluations through `Task`: `calls` of the function, `evaluations` one per client and step."""

    def __init__(self):
        self.calls = self.evaluations = 0
        self._inside = False

    def install(self, monkeypatch) -> None:
        for name in ("gradient", "gradient_and_loss"):
            monkeypatch.setattr(Task, name, self._counting(getattr(Task, name)))

    def _counting(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def counted(task, w, batch, of=None):
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
    """How many clients a call inside vmap stands for: memory behind a tensor over what is seen of it."""

    def behind(leaf: Tensor) -> int:
        inside = leaf
        while torch._C._functorch.is_batchedtensor(inside):
            inside = torch._C._functorch.get_unwrapped(inside)
        return inside.numel() // leaf.numel()

    return max(map(behind, tensors(tree)), default=1)


def spying(algorithm: Algorithm, seen: list[dict[str, Any]]) -> Algorithm:
    """The algorithm, noting in `seen` every client update (`client_update`) and server update (`server_update`)."""

    def client_update(self, task, message, local, batches):
        seen.append({"what": "client", "round": batches.round, "message": message, "batches": batches})
        return super(spy, self).client_update(task, message, local, batches)

    def server_update(self, state, uploads, cohort):
        seen.append({"what": "server", "round": cohort.round, "cohort": cohort})
        return super(spy, self).server_update(state, uploads, cohort)

    spy = type(
        f"Spying{type(algorithm).__name__}",
        (type(algorithm),),
        {"client_update": client_update, "server_update": server_update},
    )
    copy = object.__new__(spy)
    copy.__dict__.update(vars(algorithm))
    return copy
