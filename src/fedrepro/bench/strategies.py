"""`make bench`: a round's clients in a loop and under vmap, for each model at the sizes of a study. `python -m
fedrepro.bench.strategies [scale]` checks what models declare (`fedrepro.core.model`): seconds of the processor, one
thread, the median of some rounds. Into results/bench/strategies.csv."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import torch

from fedrepro.bench.common import beginning_with, write
from fedrepro.core import parts
from fedrepro.core.clients import strategy
from fedrepro.core.experiment import Experiment, load_experiments
from fedrepro.core.rounds import advance
from fedrepro.core.streams import seeds_of
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from fedrepro.workflow.train_job import Inputs, keep_freed_memory, prepare


def cases(scale: str) -> dict[str, tuple[Experiment, str]]:
    """Model → the first experiment that trains it, and the first of its algorithms that has rounds."""
    found: dict[str, tuple[Experiment, str]] = {}
    for e in load_experiments(ROOT / "config", scale).values():
        rounds = [a for a in e.spec["algorithms"] if parts.algorithm(e.methods(a)[0]).iterative]
        if rounds:
            found.setdefault(e.spec["model"]["name"], (e, rounds[0]))
    return found


def measure(experiment: Experiment, algorithm: str, rounds: int = 3) -> dict[str, object]:
    """One row: seconds per round either way; no vmap where the model or its batches cannot be vectorised."""
    shard = experiment.shards()[0]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(Path(folder, "data.npz"), Path(folder, "federation.npz"))
        seeds, spec = seeds_of(shard), experiment.spec
        prepare_data(experiment.dataset_id, spec["dataset"], seeds, "standin", (), inputs.dataset)
        partition_data(experiment.federation_id, spec["partition"], seeds, inputs.dataset, inputs.federation)
        task, plan, replicates = prepare(experiment, algorithm, shard, inputs, torch.device("cpu"))
    for r in replicates:
        r.state = r.algorithm.init(r.problem, r.w)
    times: dict[str, list[float]] = {"loop": [], "vmap": []}
    for t in range(rounds + 1):
        for way in beginning_with(t, times):
            begin = time.process_time()
            try:
                advance(task, replicates, plan, strategy(task.model.strategy("cpu", way)), t % plan.rounds)
            except UserError:  # there is no vectorised form
                del times[way]
            else:
                times[way].append(time.process_time() - begin)
    seconds = {way: statistics.median(each[1:]) for way, each in times.items()}  # the first is a warm-up
    known = {"model": spec["model"]["name"], "experiment": experiment.id, "algorithm": algorithm}
    known |= {"declared": task.model.strategy("cpu"), "faster": min(seconds, key=lambda way: seconds[way])}
    return {**known, **{f"{way}_s": value for way, value in seconds.items()}}


def main(scale: str = "demo") -> None:
    torch.set_num_threads(1)
    keep_freed_memory()
    write("strategies", pd.DataFrame([measure(*case) for case in cases(scale).values()]), digits=4, scale=scale)


if __name__ == "__main__":
    main(*sys.argv[1:])
