"""`fedrepro plan` (`make plan`): jobs, gradient steps and estimates of time, GPU-hours and disk, before anything runs.
Claims that an earlier run at this scale left open are counted, with the times that the ledger gives for deciding them.
"""

import heapq
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.commands.command import CONFIG, Command, read_rows
from fedrepro.commands.next import open_claims, summary
from fedrepro.files import read_yaml

if TYPE_CHECKING:
    from fedrepro.workflow.costs import TrainingJob
    from fedrepro.workflow.layout import Layout

FLEETS = (1, 8, 32)  # GPUs: of a workstation, a server, a cluster


def plan(given: Namespace) -> Iterator[str]:
    yield describe(_layout(given), os.cpu_count() or 1)


def rows(given: Namespace) -> Iterator[dict[str, Any]]:
    """The training jobs with their estimates."""
    from fedrepro.workflow import costs

    layout = _layout(given)
    for job in costs.training_jobs(Path(layout.results).parent, costs.needed_experiments(layout), costs.core_rate()):
        yield asdict(job)


def _layout(given: Namespace) -> "Layout":
    from fedrepro.workflow.layout import Layout

    config = read_yaml(CONFIG / "config.yaml")
    return Layout(config | dict(setting.partition("=")[::2] for setting in given.setting))


def describe(layout: "Layout", cores: int) -> str:
    """The plan as text."""
    from fedrepro.workflow import costs

    experiments = costs.needed_experiments(layout)
    jobs = list(costs.training_jobs(Path(layout.results).parent, experiments, rate := costs.core_rate()))
    lines = [f"{'experiment':<28}{'algorithm':<20}{'seeds':>6}{'gradient steps':>16}{'time':>10}"]
    for j in jobs:
        known = "" if j.measured else " (never ran here: a guess)"
        lines.append(f"{j.experiment:<28}{j.algorithm:<20}{j.seeds:>6}{j.steps:>16,}{_time(j.seconds):>10}{known}")
    counts = costs.other_job_counts(layout, experiments)
    work = sum(j.seconds for j in jobs) + costs.other_seconds(counts)
    steps = sum(j.steps for j in jobs)
    longest = max((j.seconds for j in jobs), default=0.0)
    total = len(jobs) + sum(counts.values())
    gpu_hours = sum(j.gpu_seconds for j in jobs) / 3600
    room = costs.Sizes.found(Path(layout.results).parent).data(experiments) + sum(j.bytes for j in jobs)
    room += costs.ARTEFACT_BYTES * len(layout.chosen) + costs.STUDY_BYTES * len(layout.whole_studies)
    lines += [
        "",
        f"scale {layout.scale}: {total} jobs from scratch, {len(jobs)} training, {steps:,} gradient steps",
        f"about {_time(work)} of work, {_time(max(longest + 10, work / cores))} on {cores} cores",
        f"about {gpu_hours:.1f} GPU-hours, the longest job {_time(max((j.gpu_seconds for j in jobs), default=0.0))}"
        f" (a core here computes {rate:.0f} GFLOP/s; assumed of a GPU: {costs.GPU_RATE:,.0f} GFLOP/s, at least"
        f" {1000 * costs.GPU_STEP:g} ms per step)",
        f"about {room / 1e9:.2f} GB on the disk, without checkpoints",
    ]
    if layout.device == "cuda":
        lines += ["", *gpu_plan(jobs, layout)]
    ledgers = [path for s in layout.chosen_studies if (path := Path(layout.at(f"ledgers/{s}.csv"))).is_file()]
    if ledgers:
        claims = open_claims(row for path in ledgers for row in read_rows(path))
        lines.append(f"{summary(claims)} (`fedrepro next` lists them)")
    return "\n".join(lines)


def gpu_plan(jobs: Sequence["TrainingJob"], layout: "Layout") -> Iterator[str]:
    """GPU-hours per study and per claim, and the time on FLEETS of GPUs: a job has a GPU of its own and waits for no
    other; the longest start first."""
    from fedrepro.workflow.priorities import needed_by_claims

    times = [f"{count} GPUs {_time(makespan(jobs, count))}" for count in FLEETS]
    yield f"on {', '.join(times)}; one job per GPU, jobs wait for no data, no queue: assumed, as no GPU was measured"
    hours: dict[str, float] = {}
    for job in jobs:
        hours[job.experiment] = hours.get(job.experiment, 0.0) + job.gpu_seconds / 3600
    yield f"{'study or claim':<60}{'GPU-hours':>12}"
    for study in layout.chosen_studies:
        mine = sum(spent for experiment, spent in hours.items() if experiment.split("/")[0] == study)
        yield f"{study:<60}{mine:>12.2f}"
        path = layout.declared[study].file("claims.yaml")
        for claim, needed in (needed_by_claims(path) if path else {}).items():
            if behind := [hours[id] for e in sorted(needed) if (id := f"{study}/{e}") in hours]:
                yield f"  {claim:<58}{sum(behind):>12.2f}"


def makespan(jobs: Sequence["TrainingJob"], gpus: int) -> float:
    """Seconds until all jobs are done, each given to the GPU that is free first, the longest first."""
    free = [0.0] * gpus
    for seconds in sorted((job.gpu_seconds for job in jobs), reverse=True):
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("setting", nargs="*", metavar="KEY=VALUE", help="as for snakemake's --config: scale=demo")


COMMAND = Command(
    help="jobs, and estimates of time, GPU-hours and disk",
    arguments=arguments,
    run=plan,
    rows=rows,
    examples=("scale=smoke only={study}",),
)
