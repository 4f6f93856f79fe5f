"""What is recorded after a round: the method's own numbers, and loss and score of every split."""

from collections.abc import Iterable

import numpy as np
import torch

from fedrepro.core.algorithm import Metric, Predictor
from fedrepro.core.federation import Holdings
from fedrepro.core.metrics import MetricLog
from fedrepro.core.model import AssessingModel, Assessment
from fedrepro.core.params import Params, all_finite
from fedrepro.core.replicates import Plan, Replicate
from fedrepro.core.task import Task


def record(task: Task, replicates: Iterable[Replicate], plan: Plan, round: int, log: MetricLog) -> str:
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
    for split, everyone, holders, (losses, scores, more) in _assessed(task, r):
        _log_own(log, r, round, (m for m in more if each_client or m.client < 0))
        holdings = getattr(r.problem.federation, split)
        weights = np.ones(1) if everyone else _weights(r.problem.weights, holdings)
        for name, values in (("loss", losses), (task.score_name, scores)):
            log.add(r.run, round, name, float(weights @ values), split=split)
            for k in holders if each_client and not everyone else ():
                log.add(r.run, round, name, values[k], split=split, client=k)
        first_loss = float(weights @ losses) if first_loss is None else first_loss
    assert first_loss is not None  # all have training data, and predictors need a test set
    return first_loss


def _assessed(task: Task, r: Replicate) -> list[tuple[str, bool, list[int], Assessment]]:
    """(split, whether it is a global set, its holders, their assessment) of every split. What is measured on the device
    comes to the host in one piece: on a GPU each copy waits for all that was computed before."""
    found, measured = [], []
    for split, holdings in r.problem.federation.splits():
        everyone = len(holdings) == 1 and len(r.problem.federation) > 1
        holders = [-1] if everyone else np.flatnonzero(holdings.sizes).tolist()
        numbers = np.zeros(len(holdings)), np.zeros(len(holdings))
        assessed: Assessment | None = (*numbers, ())
        if isinstance(r.algorithm, Predictor):
            assessed = r.algorithm.assess(r.problem, r.state, split)
        else:
            models = {k: r.algorithm.model(r.state, None if everyone else r.local_of(k), k) for k in holders}
            if isinstance(task.model, AssessingModel) and not everyone:
                assessed = task.model.assess(r.problem, models, split)
            else:
                for w, clients in _by_model(models):
                    measured.append((numbers, clients, task.evaluate(w, holdings, clients)))
        if assessed is not None:
            found.append((split, everyone, holders, assessed))
    values = torch.cat([part for *_, part in measured], 1).to("cpu").double().numpy() if measured else np.zeros((2, 0))
    for (losses, scores), clients, part in measured:
        (losses[clients], scores[clients]), values = values[:, : part.shape[1]], values[:, part.shape[1] :]
    return found


def _by_model(models: dict[int, Params]) -> Iterable[tuple[Params, list[int]]]:
    """Each model with its clients; −1, the holder of a global set, is its first."""
    by_model: dict[int, tuple[Params, list[int]]] = {}
    for k, w in models.items():
        by_model.setdefault(id(w), (w, []))[1].append(max(k, 0))
    return by_model.values()


def _weights(p: np.ndarray, holdings: Holdings) -> np.ndarray:
    """p_k over the clients that hold anything of this split, summing to 1."""
    held: np.ndarray = p * (holdings.sizes > 0)
    held /= held.sum()
    return held
