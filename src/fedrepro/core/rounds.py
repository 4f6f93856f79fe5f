"""The communication-round loop, the only one. It advances all replicates (settings × seeds) of one algorithm together.

Each round samples clients, draws their batches, runs their updates and the server's, evaluates and logs. A replicate
with numbers that are not finite is recorded as diverged and stops."""

import functools
import itertools
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

import numpy as np
import torch
from torch import Tensor

from fedrepro.core import streams
from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Predictor, Problem, State, Traffic
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.clients import Strategy, Work
from fedrepro.core.federation import Batches, Federation, Holdings, LocalWork
from fedrepro.core.metrics import MetricLog
from fedrepro.core.model import AssessingModel, Assessment
from fedrepro.core.params import Params, all_finite, tree_bytes
from fedrepro.core.task import Task


class Progress:
    """`say(done)` writes `round 40/160 · 25 % · 3.1 s, 9.3 s left · loss 0.12` to stderr (the job's log)."""

    def __init__(self, total: int, every: float = 3.0, stream: TextIO | None = None):
        self.total, self.every, self.stream = total, every, stream or sys.stderr
        self._start = self._last = time.monotonic()
        self._first: int | None = None

    def say(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        self._first = done - 1 if self._first is None else self._first
        if done < self.total and now - self._last < self.every:
            return
        self._last, elapsed = now, now - self._start
        left = elapsed / max(1, done - self._first) * (self.total - done)
        parts = (f"round {done}/{self.total}", f"{done / self.total:.0%}", f"{elapsed:.1f} s, {left:.1f} s left", note)
        self.line(" · ".join(filter(None, parts)))

    def line(self, text: str) -> None:
        self.stream.write(text + "\n")
        self.stream.flush()


@dataclass(frozen=True)
class Participation:
    """The clients of a round: all, or `clients` of them drawn without replacement.
    sampling: `weight` draws with probability p_k and averages plainly, `uniform` draws evenly and weighs by K/|S| · p_k
    (thesis, Remark 4). weights: p_k is the share of the samples (`size`) or 1/K (`uniform`).
    """

    clients: int | None = None
    sampling: str = "uniform"
    weights: str = "size"

    def shares(self, federation: Federation) -> np.ndarray:
        """p_k [K]."""
        sizes = federation.train.sizes if self.weights == "size" else np.ones(len(federation))
        shares: np.ndarray = sizes / sizes.sum()
        return shares

    def draw(self, round: int, p: np.ndarray, experiment: str, seed: int) -> Cohort:
        total = len(p)
        if self.clients is None or self.clients >= total:
            return Cohort(round, np.arange(total), p)
        rng = streams.generator(experiment, seed, "clients", round)
        drawn = rng.choice(total, self.clients, replace=False, p=p if self.sampling == "weight" else None)
        drawn.sort()
        if self.sampling == "weight":
            return Cohort(round, drawn, np.full(self.clients, 1 / self.clients))
        return Cohort(round, drawn, p[drawn] * total / self.clients)


@dataclass(frozen=True)
class Plan:
    """Common to all replicates of a job."""

    experiment: str
    rounds: int
    work: LocalWork
    participation: Participation = Participation()
    evaluate_every: int = 1
    client_metrics: str = "last"  # never | last | always: rounds that record each client's own numbers


@dataclass
class Replicate:
    """One run: a setting of the algorithm, a seed, its problem and its state."""

    setting: str
    seed: int
    algorithm: Algorithm
    problem: Problem
    w: Params
    state: State = field(default_factory=dict)
    local: dict[int, Any] = field(default_factory=dict)
    diverged: int | None = None
    traffic: Traffic = field(default_factory=Traffic)  # of the last round

    @property
    def run(self) -> tuple[str, int]:
        return self.setting, self.seed

    def local_of(self, client: int) -> Any:
        """A client's own state: kept from its last round, or initial."""
        kept = client in self.local
        return self.local[client] if kept else self.algorithm.init_client(self.problem, client, self.w)


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
    log = MetricLog()
    counts = {"gradient_steps": 0, "resumed_from": -1}
    saved = checkpoint.load() if checkpoint else None
    if saved:
        log = MetricLog(saved["log"])
        counts = {"gradient_steps": saved["gradient_steps"], "resumed_from": saved["round"]}
        for r, (state, local, diverged) in zip(replicates, saved["replicates"], strict=True):
            r.state, r.local, r.diverged = state, local, diverged
    else:
        iterative = replicates[0].algorithm.iterative
        states = type(replicates[0].algorithm).init_all([(r.algorithm, r.problem, r.w) for r in replicates])
        for r, state in zip(replicates, states, strict=True):
            r.state = state
        _record(task, replicates, plan, 0 if iterative else plan.rounds, log)
        if not iterative:
            return log, counts

    for t in range(max(0, counts["resumed_from"]), plan.rounds):
        running = [r for r in replicates if r.diverged is None]
        if not running:
            break
        counts["gradient_steps"] += advance(task, running, plan, run_clients, t)
        note = _record(task, running, plan, t + 1, log)
        if checkpoint and checkpoint.due() and t + 1 < plan.rounds:
            kept = [(r.state, r.local, r.diverged) for r in replicates]
            steps = counts["gradient_steps"]
            checkpoint.save({"round": t + 1, "replicates": kept, "log": log.columns, "gradient_steps": steps})
        if progress:
            progress.say(t + 1, note)
    return log, counts


def advance(task: Task, running: Sequence[Replicate], plan: Plan, run_clients: Strategy, t: int) -> int:
    """Round t of all running replicates; the number of gradient steps."""
    last = t + 1 == plan.rounds
    for r in running:
        r.state, r.traffic = r.algorithm.survey(r.problem, r.state)
    cohorts, batches = _sample(running, plan, t)
    for exchange in range(running[0].algorithm.exchanges):
        if exchange:
            batches = {key: replace(b, exchange=exchange) for key, b in batches.items()}
        works = [
            Work(r.algorithm, message, r.local_of(k), batches[r.seed, k])
            for r, cohort in zip(running, cohorts, strict=True)
            for k, message in zip(cohort.clients.tolist(), r.algorithm.messages(r.state, cohort.clients), strict=True)
        ]
        if works:
            results = run_clients(task, works)
            messages = (w.message for w in works)
            for r, cohort in zip(running, cohorts, strict=True):
                down = sum(map(tree_bytes, itertools.islice(messages, len(cohort.clients)))) if last else 0
                uploads = results.take(cohort.clients.tolist(), r.local)
                if last:
                    uploads.count()
                r.state = r.algorithm.server_update(r.state, uploads, cohort)
                uploads.finish()
                r.traffic = r.traffic.plus(Traffic(down, uploads.bytes))
    return sum(len(w.batches) for w in works)


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


def _record(task: Task, replicates: Sequence[Replicate], plan: Plan, round: int, log: MetricLog) -> str:
    """Log this round's numbers; mark replicates that diverged. Returns a note for the progress line."""
    note, last = "", round == plan.rounds
    for r in replicates:
        _log_own(log, r, round, r.algorithm.metrics(r.problem, r.state, round))
        if last and r.algorithm.iterative:
            log.add(r.run, round, "bytes_down", r.traffic.down)
            log.add(r.run, round, "bytes_up", r.traffic.up)
        finite = all_finite(r.state)
        if finite and (round % plan.evaluate_every == 0 or last):
            clients = plan.client_metrics == "always" or (plan.client_metrics == "last" and last)
            for k in range(len(r.problem.federation)) if clients else ():
                mine = r.algorithm.client_metrics(r.problem, r.local_of(k), k)
                _log_own(log, r, round, (m._replace(client=k) for m in mine))
            loss = evaluate(task, r, round, log, clients)
            finite = np.isfinite(loss)
            note = f"loss {loss:.4g}"
        if not finite:
            r.diverged = round
            log.add(r.run, round, "diverged", 1.0)
            note = f"{r.setting or 'run'}, seed {r.seed} diverged in round {round}"
    return note


def _log_own(log: MetricLog, r: Replicate, round: int, metrics: Iterable[Metric]) -> None:
    for m in metrics:
        log.add(r.run, round, m.metric, m.value, split=m.split, client=m.client, group=m.group, step=m.step)


def evaluate(task: Task, r: Replicate, round: int, log: MetricLog, each_client: bool) -> float:
    """Log loss and score on every split: of each client (optional) and as the mean weighted by p_k. A split with a
    single holder is a global set, evaluated with the server's model. Returns the training loss."""
    first_loss: float | None = None
    for split, holdings in r.problem.federation.splits():
        everyone = len(holdings) == 1 and len(r.problem.federation) > 1
        holders = [-1] if everyone else np.flatnonzero(holdings.sizes).tolist()
        if isinstance(r.algorithm, Predictor):
            assessed = r.algorithm.assess(r.problem, r.state, split)
        else:
            assessed = _assess(task, r, split, holders)
        if assessed is None:
            continue
        losses, scores, more = assessed
        _log_own(log, r, round, (m for m in more if each_client or m.client < 0))
        weights = np.ones(1) if everyone else _weights(r.problem.weights, holdings)
        for name, values in (("loss", losses), (task.score_name, scores)):
            log.add(r.run, round, name, float(weights @ values), split=split)
            for k in holders if each_client and not everyone else ():
                log.add(r.run, round, name, values[k], split=split, client=k)
        first_loss = float(weights @ losses) if first_loss is None else first_loss
    assert first_loss is not None  # all have training data, and predictors need a test set
    return first_loss


def _assess(task: Task, r: Replicate, split: str, holders: list[int]) -> Assessment:
    """The assessment of the clients' models, or of the server's on a global set (holders [−1])."""
    everyone, holdings = holders == [-1], getattr(r.problem.federation, split)
    models = {k: r.algorithm.model(r.state, None if everyone else r.local_of(k), k) for k in holders}
    if isinstance(task.model, AssessingModel) and not everyone:
        return task.model.assess(r.problem, models, split)
    by_model: dict[int, tuple[Params, list[int]]] = {}
    for k, w in models.items():
        by_model.setdefault(id(w), (w, []))[1].append(max(k, 0))
    losses, scores = np.zeros(len(holdings)), np.zeros(len(holdings))
    for w, clients in by_model.values():
        losses[clients], scores[clients] = (v.numpy() for v in task.evaluate(w, holdings, clients))
    return losses, scores, ()


def _weights(p: np.ndarray, holdings: Holdings) -> np.ndarray:
    """p_k over the clients that hold anything of this split, summing to 1."""
    held: np.ndarray = p * (holdings.sizes > 0)
    held /= held.sum()
    return held
