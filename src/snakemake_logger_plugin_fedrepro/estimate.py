"""How long a run still takes, from the plan's costs and the jobs so far.

The plan's costs of jobs that never ran are guesses: they can be fifty times too low for the jobs of one experiment,
which says nothing about others. So the jobs of an experiment are corrected by what its own jobs took; where none is
done yet, by the median over the other experiments of the study, and else by the median over studies.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from fedrepro.workflow.counts import OTHER_JOBS

TRAINING = "train_algorithm"
PRIOR = 20.0  # seconds of jobs of a rule that the plan's costs count for, beside what was measured


@dataclass
class Job:
    kind: str  # the rule; of a training job STUDY/EXPERIMENT
    cost: float | None  # seconds that the plan expects
    begin: float


@dataclass
class Estimate:
    """The jobs of a run: planned numbers per rule, the plan's costs of training jobs, finished and running ones."""

    planned: dict[str, int] = field(default_factory=dict)
    lanes: int = 1  # jobs side by side
    plan: Path | None = None  # the file with the costs of training jobs, once it is written
    rough: dict[str, float] = field(default_factory=dict)  # training job → seconds, until the plan is made
    training: dict[str, float] = field(default_factory=dict)  # waiting training job → seconds
    running: dict[int, Job] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    #: kind of job → seconds measured and expected, of its finished jobs with a cost
    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0]))
    _begun: set[str] = field(default_factory=set)
    _uncosted: dict[str, Job] = field(default_factory=dict)  # training jobs that began before the plan was made

    def begin(self, job: int, rule: str, name: str, now: float) -> None:
        """name: STUDY/EXPERIMENT/ALGORITHM/SHARD of a training job."""
        self._read()
        cost = self.training.pop(name, None) if rule == TRAINING else OTHER_JOBS.get(rule, 0.0)
        self.running[job] = Job(experiment_of(name) if rule == TRAINING else rule, cost, now)
        self.started[rule] += 1
        if rule == TRAINING:
            self._begun.add(name)
        if rule == TRAINING and cost is None:
            self._uncosted[name] = self.running[job]

    def finish(self, job: int, now: float) -> None:
        done = self.running.pop(job, None)
        if done and done.cost is not None:
            measured, expected = self.spent[done.kind]
            self.spent[done.kind] = [measured + now - done.begin, expected + done.cost]

    def drop(self, job: int) -> None:
        """A job that failed."""
        self.running.pop(job, None)

    @property
    def is_rough(self) -> bool:
        """Whether there is training but no plan yet: `left` rests on the number of jobs alone."""
        return self.plan is not None and self.planned.get(TRAINING, 0) > 0

    def left(self, now: float) -> float | None:
        """Seconds; None as long as nothing is known about the training jobs."""
        self._read()
        if self.is_rough and not self.rough:
            return None
        waiting = sum(self._waiting(rule, count) for rule, count in self.planned.items())
        running = [self._open(job, now) for job in self.running.values()]
        return max([(waiting + sum(running)) / max(1, self.lanes), *running], default=0.0)

    def _open(self, job: Job, now: float) -> float:
        """Seconds that a running job still takes."""
        return max(0.0, (job.cost or 0.0) * self._pace(job.kind) - (now - job.begin))

    def _waiting(self, rule: str, count: int) -> float:
        """Seconds of the rule's jobs that have not begun."""
        number = max(0, count - self.started[rule])
        if rule != TRAINING:
            return number * OTHER_JOBS.get(rule, 0.0) * self._pace(rule)
        costs = self.training
        if self.is_rough:
            costs = {name: cost for name, cost in self.rough.items() if name not in self._begun}
        paces = {kind: self._pace(kind) for kind in set(map(experiment_of, costs))}
        total = sum(cost * paces[experiment_of(name)] for name, cost in costs.items())
        return number * total / max(1, len(costs))  # snakemake's number of jobs counts, of the plan's only the costs

    def _pace(self, kind: str) -> float:
        """How much longer jobs of a kind take than planned."""
        if kind in self.spent or "/" not in kind:
            return self._ratio(kind)
        studies: dict[str, list[float]] = defaultdict(list)
        for done in (done for done in self.spent if "/" in done):
            studies[done.split("/")[0]].append(self._ratio(done))
        if own := studies.get(kind.split("/")[0]):
            return middle([1.0, *own])
        return middle([1.0, *map(middle, studies.values())])

    def _ratio(self, kind: str) -> float:
        measured, expected = self.spent.get(kind, (0.0, 0.0))
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


def experiment_of(job: str) -> str:
    """STUDY/EXPERIMENT of STUDY/EXPERIMENT/ALGORITHM/SHARD."""
    return "/".join(job.split("/")[:2])


def middle(ratios: Iterable[float]) -> float:
    """The median; of an even number, the geometric mean of the two in the middle."""
    return math.exp(median(map(math.log, ratios)))
