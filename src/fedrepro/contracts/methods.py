"""The contracts of a method; its `trial` names hyper-parameters for the small federations."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedrepro.contracts.contract import Contract, hold
from fedrepro.contracts.crashes import Crash, CrashingAt, Fragile
from fedrepro.contracts.small import (
    FULL_BATCH,
    MINI_BATCH,
    RAGGED,
    GradientCounter,
    Run,
    federations,
    make_plan,
    make_task,
    run,
    spying,
    tensors,
)
from fedrepro.core import parts
from fedrepro.core.algorithm import Algorithm
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.federation import LocalWork
from fedrepro.core.metrics import COLUMNS
from fedrepro.core.model import StrategyName

BY_SEED = {0: RAGGED, 1: RAGGED[::-1]}
CASES = {
    "linear, full batch": ("linear", FULL_BATCH),
    "linear, mini-batch": ("linear", MINI_BATCH),
    "softmax, full batch": ("softmax", FULL_BATCH),
    "softmax, mini-batch": ("softmax", MINI_BATCH),
    "mlp, five steps": ("mlp", LocalWork(steps=5, batch=3)),
}
#: other methods cannot train a prior's likelihood
PRIORS = {
    "gaussian process, mini-batch": ("gaussian_process", MINI_BATCH),
    "gaussian process, full batch": ("gaussian_process", FULL_BATCH),
}
STRATEGIES: tuple[StrategyName, ...] = ("loop", "vmap")
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}
#: questions whether a checkpoint is due: four runs are initialised, then each has six clients per exchange
MOMENTS = {"while runs are initialised": 2, "in the first run": 8, "in the third run": 20, "in the next round": 50}
LONGEST = 200  # lines of a method's file


def contracts(name: str) -> Iterator[Contract]:
    """Those of one method. Methods without rounds have no client updates."""
    yield Contract.of("a frozen dataclass of hyper-parameters with defaults", _is_a_frozen_dataclass, name)
    yield Contract.of("a short file of its own that cites its source", _has_its_own_file, name)
    yield Contract.of("whole numbers of a config file become real ones", _takes_whole_numbers, name)
    if not parts.algorithm(name).iterative:
        return
    for case in parts.algorithm(name).trial.cases or CASES:
        yield Contract.of(f"loop and vmap agree to 1e-9 ({case})", _strategies_agree, name, case)
    for strategy in STRATEGIES:
        yield Contract.of(f"no gradient is wasted ({strategy})", _wastes_no_gradient, name, strategy)
        yield Contract.of(f"same seed, same bytes ({strategy})", _is_deterministic, name, strategy)
        yield Contract(f"resumes with the same bytes ({strategy})", partial(_resumes, name, strategy))
    for moment, question in MOMENTS.items():
        yield Contract(
            f"resumes with the same bytes, cut off {moment}", partial(_resumes_inside_a_round, name, question)
        )
    yield Contract.of("it learns", _learns, name)
    yield Contract.of("its log is tidy", _logs_tidily, name)
    yield Contract.of("batches, cohorts and start are those of every method", _shares_the_seed, name)
    yield Contract.of("a client update is pure", _is_pure, name)
    yield Contract("its state survives a checkpoint", partial(_survives_a_checkpoint, name))
    yield Contract.of("a client alone with one sample runs", _runs_alone, name)


def settings_of(name: str) -> list[Algorithm]:
    make = parts.algorithm(name)
    return [make.from_config(dict(hyper)) for hyper in make.trial.settings]


def _case_of(name: str, case: str) -> tuple[str, LocalWork]:
    """(model, local work) of the case, or of the first possible one if the method needs another model."""
    possible = parts.algorithm(name).trial.cases or tuple(CASES)
    return (CASES | PRIORS)[case if case in possible else possible[0]]


def start(name: str, case: str = "softmax, mini-batch", seeds: tuple[int, ...] = tuple(BY_SEED), **options: Any) -> Run:
    model, work = _case_of(name, case)
    by_seed = {seed: f for seed, f in federations(model, BY_SEED).items() if seed in seeds}
    plan = make_plan(3, work, "uniform", client_metrics="always")
    return run(make_task(model), by_seed, plan, *settings_of(name), **options)


#: both strategies are deterministic, so several contracts share one run of each
_cached = functools.cache(start)


def _is_a_frozen_dataclass(name: str) -> None:
    make = parts.algorithm(name)
    hold(dataclasses.is_dataclass(make), f"{make.__name__} is no dataclass")
    bare = [f.name for f in dataclasses.fields(make) if f.default is dataclasses.MISSING]
    hold(not bare, f"without a default: {', '.join(bare)}")
    hold(make.__dataclass_params__.frozen, "it is not frozen")  # type: ignore[attr-defined]
    unknown = make.server_only - {f.name for f in dataclasses.fields(make)}
    hold(not unknown, f"server_only names no field: {', '.join(unknown)}")


def _has_its_own_file(name: str) -> None:
    module = importlib.import_module(parts.module_of("algorithms", name))
    hold(parts.algorithm(name).__module__ == module.__name__, "its class stands elsewhere")
    hold(len(module.__doc__ or "") > 40, "the module's docstring does not cite the source")
    lines = len(inspect.getsource(module).splitlines())
    hold(lines <= LONGEST, f"{lines} lines, at most {LONGEST}")


def _takes_whole_numbers(name: str) -> None:
    make = parts.algorithm(name)
    floats = [f for f in dataclasses.fields(make) if f.init and f.type in (float, "float")]
    defaults: dict[str, Any] = {f.name: f.default for f in floats}
    whole = {k: int(v) for k, v in defaults.items() if v == int(v)}
    made = make.from_config(whole)
    wrong = [k for k in whole if not isinstance(getattr(made, k), float)]
    hold(not wrong, f"stay whole: {', '.join(wrong)}")


def _strategies_agree(name: str, case: str) -> None:
    loop, vmap = (_cached(name, case, strategy=strategy) for strategy in STRATEGIES)
    hold(loop.counts == vmap.counts, f"counts {loop.counts} and {vmap.counts}")
    keys = [column for column in COLUMNS if column != "value"]
    hold(loop.frame[keys].equals(vmap.frame[keys]), "they log other rows")
    np.testing.assert_allclose(loop.frame["value"], vmap.frame["value"], **CLOSE)
    for a, b in zip(loop.replicates, vmap.replicates, strict=True):
        hold(list(a.local) == list(b.local), "they keep the states of other clients")
        mine, theirs = tensors([a.state, list(a.local.values())]), tensors([b.state, list(b.local.values())])
        hold(mine, "it has no state")
        for x, y in zip(mine, theirs, strict=True):
            torch.testing.assert_close(x, y, **CLOSE)


def _wastes_no_gradient(name: str, strategy: StrategyName) -> None:
    each, settings = parts.algorithm(name).trial.gradients, len(settings_of(name))
    with GradientCounter() as gradients:
        found = start(name, "mlp, five steps" if each is not None else "softmax, mini-batch", strategy=strategy)
    if each is not None:
        expected = 3 * sum(len(sizes) for sizes in BY_SEED.values()) * settings * each
    else:  # per setting: three rounds of two epochs in batches of three
        expected = 3 * 2 * sum(-(-size // 3) for sizes in BY_SEED.values() for size in sizes) * settings
        steps = found.counts["gradient_steps"]
        hold(steps == gradients.evaluations, f"{gradients.evaluations} gradients, {steps} counted")
    hold(gradients.evaluations == expected, f"{gradients.evaluations} gradients, {expected} are needed")


def _is_deterministic(name: str, strategy: StrategyName) -> None:
    first, again = (start(name, seeds=(0,), strategy=strategy) for _ in range(2))
    hold(first.parquet() == again.parquet(), "a second run differs")
    by_seed = _cached(name, strategy="loop").frame
    by_seed = by_seed[(by_seed["round"] == 3) & (by_seed["client"] == -1)]
    losses = by_seed[by_seed["metric"] == "loss"].groupby("seed")["value"].first()
    hold(losses.nunique() == len(BY_SEED), "two seeds end alike")


def _learns(name: str) -> None:
    """The training loss of every replicate is lower at the end than at the start."""
    frame = _cached(name, "linear, full batch", strategy="loop").frame
    frame = frame[(frame["metric"] == "loss") & (frame["split"] == "train") & (frame["client"] == -1)]
    for (setting, seed), losses in frame.groupby(["setting", "seed"])["value"]:
        found = f"{setting}, seed {seed}: the training loss goes from {losses.iloc[0]:.4g} to {losses.iloc[-1]:.4g}"
        hold(losses.iloc[-1] < losses.iloc[0], found)


def _logs_tidily(name: str) -> None:
    found = _cached(name, "linear, full batch", strategy="loop")
    types = {column: str(kind) for column, kind in found.frame.dtypes.items()}
    hold(list(found.frame) == list(COLUMNS), f"columns {list(found.frame)}")
    hold((types["seed"], types["round"], types["value"]) == ("int64", "int64", "float64"), f"types {types}")
    hold(not found.frame.duplicated([c for c in COLUMNS if c != "value"]).any(), "a row stands twice")
    hold(np.isfinite(found.frame["value"]).all(), "a value is not finite")
    needed = {"loss", found.replicates[0].problem.task.score_name} - set(found.frame["metric"])
    hold(not needed, f"not logged: {', '.join(needed)}")
    hold(set(found.frame["round"]) == {0, 1, 2, 3}, f"rounds {set(found.frame['round'])}")


def _shares_the_seed(name: str) -> None:
    noted = {}
    model, work = _case_of(name, "softmax, mini-batch")
    for method in ("fedavg", name):
        seen: list[dict[str, Any]] = []
        spies = [spying(a, seen) for a in settings_of(method)[:1]]
        (r,) = run(make_task(model), federations(model, {5: RAGGED}), make_plan(3, work), *spies).replicates
        updates = [s for s in seen if s["what"] == "client" and s["batches"].exchange == 0]
        state = r.algorithm.init(r.problem, r.w)
        used = r.algorithm.model(state, r.algorithm.init_client(r.problem, 0, r.w), 0)
        noted[method] = {
            "batches": [(s["round"], [t.tolist() for t in tensors(s["batches"].index)]) for s in updates],
            "cohorts": {s["cohort"].round: s["cohort"].clients.tolist() for s in seen if s["what"] == "server"},
            "initial models": {k: v.tolist() for k, v in used.items()},
        }
    other = [what for what, value in noted[name].items() if value != noted["fedavg"][what]]
    hold(not other, f"other {' and '.join(other)} than fedavg")


def _is_pure(name: str) -> None:
    """A client update leaves its arguments unchanged, and a second call gives the same result."""
    model, work = _case_of(name, "softmax, mini-batch")
    task = make_task(model)
    seen: list[dict[str, Any]] = []
    spy = spying(settings_of(name)[0], seen)
    (replicate,) = run(task, federations(model, {0: RAGGED}), make_plan(2, work, "uniform"), spy).replicates
    algorithm = replicate.algorithm
    state = algorithm.init(replicate.problem, replicate.w)
    batches = next(s["batches"] for s in seen if s["what"] == "client")
    (message,) = algorithm.messages(state, np.array([0]))
    local = algorithm.init_client(replicate.problem, 0, replicate.w)
    given = tensors([message, local, [batches.index, batches.weight]])
    kept, randomness = [t.clone() for t in given], torch.random.get_rng_state()
    first = tensors(algorithm.client_update(task, message, local, batches))
    again = tensors(algorithm.client_update(task, message, local, batches))
    hold(all(map(torch.equal, given, kept)), "its arguments are changed")
    hold(all(map(torch.equal, first, again)), "a second call gives another result")
    hold(torch.equal(randomness, torch.random.get_rng_state()), "it draws random numbers")
    hold(not any(t.requires_grad for t in first), "its result carries a gradient")


def _survives_a_checkpoint(name: str, folder: Path) -> None:
    found = _cached(name, "softmax, mini-batch", strategy="loop")
    states = [[r.state, r.local] for r in found.replicates]
    Checkpoint(folder / "job.pt").save({"round": 3, "replicates": states})
    loaded = Checkpoint(folder / "job.pt").load()
    mine, theirs = tensors(states), tensors(loaded["replicates"] if loaded else [])
    hold(len(mine) == len(theirs) > 0, f"{len(theirs)} of {len(mine)} tensors are read back")
    hold(all(map(torch.equal, mine, theirs)), "other numbers are read back")


def _resumes(name: str, strategy: StrategyName, folder: Path) -> None:
    for case in ("softmax, mini-batch", "linear, full batch"):
        path = folder / f"{case}.pt"
        crashed = False
        try:
            start(name, case, strategy=strategy, checkpoint=Checkpoint(path, seconds=0), progress=Fragile(2))
        except Crash:
            crashed = True
        resumed = start(name, case, strategy=strategy, checkpoint=Checkpoint(path, seconds=0))
        at = resumed.counts["resumed_from"]
        hold(crashed and at == 2, f"{case}: resumed from round {at}, not 2")
        hold(resumed.parquet() == _cached(name, case, strategy=strategy).parquet(), f"{case}: it ends with other bytes")


def _resumes_inside_a_round(name: str, question: int, folder: Path) -> None:
    path = folder / "job.pt"
    with contextlib.suppress(Crash):
        start(name, strategy="loop", checkpoint=CrashingAt(path, question))
    hold(path.exists(), "it is not cut off")
    resumed, whole = start(name, strategy="loop", checkpoint=Checkpoint(path)), _cached(name, strategy="loop")
    hold(resumed.counts["resumed_from"] >= 0, "it begins anew")
    steps = [found.counts["gradient_steps"] for found in (resumed, whole)]
    hold(steps[0] == steps[1], f"{steps[0]} gradient steps, {steps[1]} are needed")
    hold(resumed.parquet() == whole.parquet(), "it ends with other bytes")
    for a, b in zip(resumed.replicates, whole.replicates, strict=True):
        same = all(map(torch.equal, tensors([a.state, a.local]), tensors([b.state, b.local])))
        hold(same, "it ends with another state")


def _runs_alone(name: str) -> None:
    (algorithm, *_) = settings_of(name)
    hyper: dict[str, Any] = {"servers": 1} if "servers" in {f.name for f in dataclasses.fields(algorithm)} else {}
    model, work = _case_of(name, "softmax, mini-batch")
    alone = dataclasses.replace(algorithm, **hyper)
    found = run(make_task(model), federations(model, {0: [1]}), make_plan(2, work), alone)
    hold(np.isfinite(found.values("loss")).all(), "its loss is not finite")
