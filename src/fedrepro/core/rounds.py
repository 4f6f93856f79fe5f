"""The communication-round loop, the only one. It advances all replicates (settings × seeds) of one algorithm together.

Each round samples clients, draws their batches, runs their updates and the server's, evaluates and logs. A replicate
with numbers that are not finite is recorded as diverged and stops.

A checkpoint is saved when it is due: after a run's initialisation, after a round and, in a loop over the clients, after
a client, since a round of a large network takes many minutes; a run's uploads of the round are kept for it. Under
vmap a round takes seconds."""

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro.core import streams
from fedrepro.core.algorithm import Cohort, State, Traffic
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.clients import Strategy, Work, run_loop
from fedrepro.core.evaluation import record
from fedrepro.core.federation import Batches
from fedrepro.core.metrics import MetricLog
from fedrepro.core.params import tree_bytes
from fedrepro.core.progress import Progress
from fedrepro.core.replicates import Plan, Replicate
from fedrepro.core.task import Task


@dataclass
class Midway:
    """Where a round stands: the replicates before `replicate` have done `exchange`; `results` are (upload, new state)
    of the next one's first clients; `steps` are the gradient steps of the whole round."""

    exchange: int = 0
    replicate: int = 0
    results: list[Any] = field(default_factory=list)
    steps: int = 0


def train(
    task: Task,
    replicates: Sequence[Replicate],
    plan: Plan,
    run_clients: Strategy,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> tuple[MetricLog, dict[str, int]]:
    """The log, and counts {gradient_steps, resumed_from (−1: from the start)}; `run_clients` is a
    `fedrepro.core.clients.strategy`."""
    log, steps, resumed, midway = MetricLog(), 0, -1, None
    saved = checkpoint.load() if checkpoint else None
    if saved:
        resumed = saved["round"]
    if saved and "replicates" in saved:
        log, steps = MetricLog(saved["log"]), saved["gradient_steps"]
        midway = Midway(**saved["midway"]) if "midway" in saved else None
        for r, (state, local, diverged, traffic) in zip(replicates, saved["replicates"], strict=True):
            r.state, r.local, r.diverged, r.traffic = state, local, diverged, Traffic(*traffic)
    else:
        iterative = replicates[0].algorithm.iterative
        _initialise(replicates, saved["initial"] if saved else (), checkpoint)
        record(task, replicates, plan, 0 if iterative else plan.rounds, log)
        if not iterative:
            return log, {"gradient_steps": 0, "resumed_from": resumed}

    def save(round: int, midway: Midway | None = None) -> None:
        if checkpoint and checkpoint.due():
            kept = [(r.state, r.local, r.diverged, tuple(r.traffic)) for r in replicates]
            whole = {"round": round, "replicates": kept, "log": log.columns, "gradient_steps": steps}
            checkpoint.save(whole | ({"midway": vars(midway)} if midway else {}))

    for t in range(max(0, resumed), plan.rounds):
        running = [r for r in replicates if r.diverged is None]
        if not running:
            break
        save_inside = functools.partial(save, t) if checkpoint and run_clients is run_loop else None
        steps += advance(task, running, plan, run_clients, t, midway, save_inside)
        midway = None
        note = record(task, running, plan, t + 1, log)
        if t + 1 < plan.rounds:
            save(t + 1)
        if progress:
            progress.say(t + 1, note)
    return log, {"gradient_steps": steps, "resumed_from": resumed}


def _initialise(
    replicates: Sequence[Replicate], known: Sequence[tuple[int, State]], checkpoint: Checkpoint | None
) -> None:
    """The initial states, but for the `known` ones of some replicates."""
    method, states = type(replicates[0].algorithm), dict(known)
    runs = [(r.algorithm, r.problem, r.w) for r in replicates]
    for together in method.groups(runs):
        if not set(together) <= set(states):
            states |= zip(together, method.init_all([runs[i] for i in together]), strict=True)
            if checkpoint and checkpoint.due() and len(states) < len(runs):
                checkpoint.save({"round": 0, "initial": list(states.items())})
    for i, r in enumerate(replicates):
        r.state = states[i]


def advance(
    task: Task,
    running: Sequence[Replicate],
    plan: Plan,
    run_clients: Strategy,
    t: int,
    midway: Midway | None = None,
    save: Callable[[Midway], None] | None = None,
) -> int:
    """Round t of all running replicates, or the rest of it from `midway` on; the number of gradient steps. `save`, for
    the loop only, is called after each client."""
    last = t + 1 == plan.rounds
    for r in running if midway is None else ():
        r.state, r.traffic = r.algorithm.survey(r.problem, r.state)
    cohorts, batches = _sample(running, plan, t)
    steps = sum(len(batches[r.seed, k]) for r, c in zip(running, cohorts, strict=True) for k in c.clients.tolist())
    at = midway or Midway(steps=steps)
    for exchange in range(at.exchange, running[0].algorithm.exchanges):
        if exchange:
            batches = {key: replace(b, exchange=exchange) for key, b in batches.items()}
        first, known = (at.replicate, at.results) if exchange == at.exchange else (0, [])
        pending = list(enumerate(zip(running, cohorts, strict=True)))[first:]
        works = [
            Work(r.algorithm, message, r.local_of(k), batches[r.seed, k])
            for _, (r, cohort) in pending
            for k, message in zip(cohort.clients.tolist(), r.algorithm.messages(r.state, cohort.clients), strict=True)
        ]
        if not works:
            continue
        results = run_clients(task, works[len(known) :])
        messages = (w.message for w in works)
        for i, (r, cohort) in pending:
            down = sum(map(tree_bytes, itertools.islice(messages, len(cohort.clients)))) if last else 0
            here = Midway(exchange, i, list(known), at.steps)
            uploads = results.take(cohort.clients.tolist(), r.local, known, _noting(here, save))
            if last:
                uploads.count()
            r.state = r.algorithm.server_update(r.state, uploads, cohort)
            uploads.finish()
            r.traffic = r.traffic.plus(Traffic(down, uploads.bytes))
            known = []
    return at.steps


def _noting(midway: Midway, save: Callable[[Midway], None] | None) -> Callable[[tuple[Any, Any]], None]:
    """Called with each client's result: keeps it with those before, for a checkpoint."""

    def note(result: tuple[Any, Any]) -> None:
        if save:
            midway.results.append(result)
            save(midway)

    return note


def _sample(running: Sequence[Replicate], plan: Plan, t: int) -> tuple[list[Cohort], dict[tuple[int, int], Batches]]:
    """The round's cohort per replicate, and the batches of (seed, client). Both are drawn once per seed: all settings,
    like all algorithms, see the same ones."""
    sampled: dict[int, Cohort] = {}
    batches: dict[tuple[int, int], Batches] = {}
    for r in running:
        if r.seed not in sampled:
            cohort = sampled[r.seed] = plan.participation.draw(t, r.problem.weights, plan.experiment, r.seed)
            batches |= {(r.seed, k): b for k, b in _draw(r, cohort, plan, t).items()}
    return [_reached(r, sampled[r.seed]) for r in running], batches


def _draw(r: Replicate, cohort: Cohort, plan: Plan, t: int) -> dict[int, Batches]:
    """Each client's batches of the round: its full batch repeated, or mini-batches from the seed's streams; for a noisy
    method with noise from another stream."""
    clients = cohort.clients.tolist()
    if plan.work.batches:
        stream = functools.partial(streams.generator, plan.experiment, r.seed, "batches")
        batches = plan.work.walk(r.problem.federation.train, clients, t, stream)
    elif plan.work.batch is None:
        steps, _ = plan.work.steps_for(1)
        batches = {k: Batches(round=t, steps=steps, whole=r.problem.whole(k)) for k in clients}
    else:
        rng = streams.generator(plan.experiment, r.seed, "batches", t)
        batches = plan.work.draw(r.problem.federation.train, clients, t, rng)
    if not r.algorithm.noisy:
        return batches
    generator = streams.torch_generator(plan.experiment, r.seed, "noise", t)
    like, width = next(iter(r.w.values())), r.algorithm.noise_width(sum(v.numel() for v in r.w.values()))

    def noise(steps: int) -> Tensor:
        return torch.randn(steps, width, generator=generator, dtype=like.dtype).to(like.device)

    return {k: replace(b, noise=noise(len(b))) for k, b in batches.items()}


def _reached(r: Replicate, cohort: Cohort) -> Cohort:
    """The cohort without clients that the method cannot reach."""
    reached = r.algorithm.participants(r.state, cohort.clients)
    if reached is cohort.clients:
        return cohort
    return Cohort(cohort.round, reached, cohort.weights[np.isin(cohort.clients, reached)])
