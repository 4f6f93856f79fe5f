"""How long a run still takes, from the plan's costs and the jobs so far."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from fedrepro.workflow.counts import OTHER_JOBS

TRAINING = "train_algorithm"
PRIOR = 20.0  # seconds of jobs of a rule that the plan's costs count for, beside what was measured


@dataclass
class Job:
    rule: str
    cost: float | None  # seconds that the plan expects
    begin: float


@dataclass
class Estimate:
    """The jobs of a run: planned numbers per rule, the plan's costs of training jobs, finished and running ones."""

    planned: dict[str, int] = field(default_factory=dict)
    lanes: int = 1  # jobs side by side
    plan: Path | None = None  # the file with the costs of training jobs, once it is written
    training: dict[str, float] = field(default_factory=dict)  # waiting training job → seconds
    running: dict[int, Job] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    #: rule → seconds measured and expected, of its finished jobs with a cost
    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    _begun: set[str] = field(default_factory=set)
    _uncosted: dict[str, Job] = field(default_factory=dict)  # training jobs that began before the plan was made

    def begin(self, job: int, rule: str, name: str, now: float) -> None:
        """name: STUDY/EXPERIMENT/ALGORITHM/SHARD of a training job."""
        self._read()
        cost = self.training.pop(name, None) if rule == TRAINING else OTHER_JOBS.get(rule, 0.0)
        self.running[job] = Job(rule, cost, now)
        self.started[rule] += 1
        if rule == TRAINING:
            self._begun.add(name)
        if rule == TRAINING and cost is None:
            self._uncosted[name] = self.running[job]

    def finish(self, job: int, now: float) -> None:
        done = self.running.pop(job, None)
        if done and done.cost is not None:
            measured, expected = self.spent[done.rule]
            self.spent[done.rule] = [measured + now - done.begin, expected + done.cost]

    def drop(self, job: int) -> None:
        """A job that failed."""
        self.running.pop(job, None)

    def left(self, now: float) -> float | None:
        """Seconds; None as long as the plan is not made."""
        self._read()
        if self.plan is not None and self.planned.get(TRAINING):
            return None
        waiting = sum(self._waiting(rule, count) for rule, count in self.planned.items())
        running = [self._open(job, now) for job in self.running.values()]
        return max([(waiting + sum(running)) / max(1, self.lanes), *running], default=0.0)

    def _open(self, job: Job, now: float) -> float:
        """Seconds that a running job still takes."""
        return max(0.0, (job.cost or 0.0) * self._pace(job.rule) - (now - job.begin))

    def _waiting(self, rule: str, count: int) -> float:
        """Seconds of the rule's jobs that have not begun."""
        number = max(0, count - self.started[rule])
        if rule != TRAINING:
            return number * OTHER_JOBS.get(rule, 0.0) * self._pace(rule)
        each = sum(self.training.values()) / max(1, len(self.training))
        return number * each * self._pace(rule)

    def _pace(self, rule: str) -> float:
        """How much longer the rule's jobs take than planned."""
        measured, expected = self.spent[rule]
        return (measured + PRIOR) / (expected + PRIOR)

    def _read(self) -> None:
        """The plan's costs of the training jobs without results, once they are there."""
        if self.plan is None or not self.plan.is_file():
            return
        costs = json.loads(self.plan.read_text(encoding="utf-8"))
        there = {name for name in costs if (self.plan.parent / "runs" / f"{name}.json").is_file()} - self._begun
        waiting = [name for name in costs if name not in there] or list(costs)  # all are there: they are made again
        for name, job in self._uncosted.items():
            job.cost = costs.get(name)
        self.training = {name: costs[name] for name in waiting if name not in self._begun}
        self.plan = None
