"""`make plan`: jobs, gradient steps and estimates of time, GPU-hours and disk, before anything runs.

A training job's time is its gradient steps at the pace of an earlier run of the same experiment and algorithm here, at
any scale that took some seconds; a larger network or batch adds its arithmetic at the rate of a core. Without one, the
time is a guess from the arithmetic, and marked as one.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fedrepro.commands import costs
from fedrepro.core import parts
from fedrepro.core.experiment import Experiment
from fedrepro.core.federation import LocalWork
from fedrepro.core.streams import seeds_of
from fedrepro.errors import UserError
from fedrepro.files import read_json, read_yaml
from fedrepro.workflow.layout import Layout

START = 2.5  # seconds: importing torch
OTHER_JOBS = {"data": 1.0, "collect": 1.0, "render": 1.5, "notebook": 6.0, "judge and report": 3.0}
#: gradient steps per second before the first run, on one core: of a small network; of a linear model, whose clients
#: are stacked and whose full batches reduce to a matrix
UNKNOWN_PACE, UNKNOWN_LINEAR_PACE = 5_000.0, 200_000.0
TELLING = 5.0  # seconds: a shorter run measures its start more than its steps


@dataclass(frozen=True)
class TrainingJob:
    experiment: str
    algorithm: str
    seeds: int
    steps: int
    seconds: float
    measured: bool
    gpu_seconds: float
    bytes: float


def training_jobs(layout: Layout, experiments: list[Experiment], rate: float) -> Iterator[TrainingJob]:
    """Every training job with its estimates. rate: GFLOP/s of a core of this machine."""
    paces, sizes = _paces(Path(layout.results).parent), costs.Sizes.found(Path(layout.results).parent)
    for e in experiments:
        samples = client_samples(e)
        flops = costs.step_flops(e, samples)
        for algorithm in e.spec["algorithms"]:
            known = paces.get((e.id, algorithm))
            for shard in e.shards():
                seeds = len(seeds_of(shard))
                steps = gradient_steps(e, algorithm, seeds)
                seconds = steps / unknown_pace(e, flops, rate)
                if known:
                    seconds = known.seconds_of(steps, seeds * len(e.settings(algorithm)), flops, rate)
                gpu = costs.gpu_seconds(e, samples, steps * flops or 1e9 * rate * seconds)
                room = sizes.run(e, algorithm, seeds)
                yield TrainingJob(e.id, algorithm, seeds, steps, START + seconds, known is not None, gpu, room)


def unknown_pace(e: Experiment, flops: float, rate: float) -> float:
    """Gradient steps per second on a core of `rate` GFLOP/s, for an experiment without an earlier run."""
    if e.spec["model"]["name"].startswith("linear"):
        return UNKNOWN_LINEAR_PACE
    return 1 / (1 / UNKNOWN_PACE + flops / (1e9 * rate))


def gradient_steps(e: Experiment, algorithm: str, seeds: int) -> int:
    """Rounds × clients per round × local steps × settings × seeds; 0 for a method without rounds."""
    if not parts.algorithm(e.methods(algorithm)[0]).iterative:  # all methods of a job agree in this
        return 0
    clients, asked = _clients(e), e.spec["participation"]["clients"]
    taking_part = clients if asked == "all" else min(asked, clients)
    steps, _ = LocalWork.from_spec(e.spec["local"]).steps_for(client_samples(e))
    return e.spec["rounds"] * taking_part * steps * len(e.settings(algorithm)) * seeds


def client_samples(e: Experiment) -> int:
    """Approximate training samples per client."""
    partition = e.spec["partition"]
    share = partition.get("inside", {}).get("train", 1.0)
    return max(1, round(share * partition.get("samples", costs.size_of(e)[1] // _clients(e))))


def _clients(e: Experiment) -> int:
    return int(e.spec["partition"].get("clients", costs.size_of(e)[0]))


@dataclass(frozen=True)
class Known:
    """An earlier job: its time, gradient steps, seeds × settings, and operations per step."""

    seconds: float
    steps: int
    runs: int
    flops: float

    def seconds_of(self, steps: int, runs: int, flops: float, rate: float) -> float:
        """Time of a job of the same experiment and algorithm at another scale, on a core of `rate` GFLOP/s."""
        if not self.steps:  # a method without rounds
            return self.seconds * runs / self.runs
        return steps * (self.seconds / self.steps + max(0.0, flops - self.flops) / (1e9 * rate))


def _paces(results: Path) -> dict[tuple[str, str], Known]:
    """(experiment, algorithm) → its largest run that took long enough."""
    largest: dict[tuple[str, str], Known] = {}
    for path in results.glob("*/runs/*/*/*/*.json"):
        run = read_json(path)
        if run["resumed_from"] is None and (run["seconds"] > TELLING or not run["gradient_steps"]):
            e = costs.experiment_of(run, path)
            runs, flops = len(run["seeds"]) * len(e.settings(run["algorithm"])), costs.step_flops(e, client_samples(e))
            found, key = Known(run["seconds"], run["gradient_steps"], runs, flops), (e.id, run["algorithm"])
            largest[key] = max(found, largest.get(key, found), key=lambda known: (known.steps, known.runs))
    return largest


def describe(layout: Layout, cores: int) -> str:
    """The plan as text."""
    needed = {(layout.artefacts[a]["study"], e) for a in layout.chosen for e in layout.artefacts[a]["experiments"]}
    for study in layout.whole_studies:
        needed |= {(study, e.name) for e in layout.experiments.values() if e.study == study}
    experiments = [layout.experiments[f"{study}/{name}"] for study, name in sorted(needed)]
    rate = costs.core_rate()
    jobs = list(training_jobs(layout, experiments, rate))
    lines = [f"{'experiment':<28}{'algorithm':<20}{'seeds':>6}{'gradient steps':>16}{'time':>10}"]
    for j in jobs:
        known = "" if j.measured else " (never ran here: a guess)"
        lines.append(f"{j.experiment:<28}{j.algorithm:<20}{j.seeds:>6}{j.steps:>16,}{_time(j.seconds):>10}{known}")
    shards = {(e.dataset_id, s) for e in experiments for s in e.shards()}
    studies = len(layout.whole_studies)
    counts = {"data": 2 * len(shards), "collect": len(experiments), "render": len(layout.chosen)}
    counts |= {"notebook": studies, "judge and report": studies + 2}
    work = sum(j.seconds for j in jobs) + sum(OTHER_JOBS[name] * count for name, count in counts.items())
    longest = max((j.seconds for j in jobs), default=0.0)
    total = len(jobs) + sum(counts.values())
    gpu_hours = sum(j.gpu_seconds for j in jobs) / 3600
    room = costs.Sizes.found(Path(layout.results).parent).data(experiments) + sum(j.bytes for j in jobs)
    room += costs.ARTEFACT_BYTES * len(layout.chosen) + costs.STUDY_BYTES * studies
    lines += [
        "",
        f"scale {layout.scale}: {total} jobs, {len(jobs)} training, {sum(j.steps for j in jobs):,} gradient steps",
        f"about {_time(work)} of work, {_time(max(longest + 10, work / cores))} on {cores} cores",
        f"about {gpu_hours:.1f} GPU-hours, the longest job {_time(max((j.gpu_seconds for j in jobs), default=0.0))}"
        f" (a core here computes {rate:.0f} GFLOP/s; assumed of a GPU: {costs.GPU_RATE:,.0f} GFLOP/s, at least"
        f" {1000 * costs.GPU_STEP:g} ms per step)",
        f"about {room / 1e9:.2f} GB on the disk, without checkpoints",
    ]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def main(arguments: list[str]) -> int:
    """arguments: `key=value`, as for snakemake's --config."""
    try:
        config = read_yaml(Path("config/config.yaml"))
        config |= dict(argument.partition("=")[::2] for argument in arguments)
        sys.stdout.write(describe(Layout(config), os.cpu_count() or 1) + "\n")
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
