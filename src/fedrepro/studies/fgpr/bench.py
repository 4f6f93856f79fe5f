"""`make bench`, Gaussian processes. Into results/bench/gp.csv and gp_growth.csv.

- gp: FGPR and Separate on CURRIN for many runs, all at once and one gpytorch model at a time, in turns and in one
  process. The case is Table 4.2's: two devices (40 and 200 samples), batches of 40 nearest neighbours, one epoch per
  round, Adam. Both ways take the same gradient steps. The second is gpytorch's ExactGP and ExactMarginalLogLikelihood
  with torch's Adam, one model per device and run, and parameters averaged by hand after every round.
- gp_growth: a round of FGPR over the number of devices, which all take part, in processor time.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import torch
from gpytorch.constraints import GreaterThan
from torch import Tensor

from fedrepro.bench.common import iqr, times_as_long, write
from fedrepro.bench.growth import times
from fedrepro.bench.rounds import one_run
from fedrepro.core import parts, streams
from fedrepro.core.algorithm import Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import build
from fedrepro.core.replicates import Participation, Plan, Replicate
from fedrepro.core.rounds import advance
from fedrepro.core.task import Task
from fedrepro.data.catalogue import Source
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR
from fedrepro.studies.fgpr.algorithms.gp_separate import GPSeparate
from fedrepro.studies.fgpr.gp.maximum_likelihood import MINIMA
from fedrepro.workflow.train_job import keep_freed_memory

RUNS, ROUNDS, LR = 30, 2, 0.01
WORK = LocalWork(epochs=1, batch=40, nearest=True)
TOGETHER, ALONE = "all at once", "one gpytorch model at a time"
DEVICES, POINTS = (5, 10, 20, 40), 64


def federations(runs: int) -> dict[int, Federation]:
    """CURRIN's devices, all runs on shared tensors."""
    load = parts.dataset("multi_fidelity").load
    splits = [load(Source(streams.generator("bench", seed, "data")), function="currin").train for seed in range(runs)]
    samples = Samples(*(torch.from_numpy(np.concatenate([getattr(s, k) for s in splits])) for k in ("x", "y")))
    starts = np.cumsum([0, *map(len, splits)])
    held = [(starts[i] + np.arange(len(s)), np.cumsum([0, *np.bincount(s.client)])) for i, s in enumerate(splits)]
    return {seed: Federation(Holdings(samples, *own)) for seed, own in enumerate(held)}


class PlainGP(gpytorch.models.ExactGP):
    def __init__(self, x: Tensor, y: Tensor, likelihood: gpytorch.likelihoods.GaussianLikelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        base = gpytorch.kernels.RBFKernel(lengthscale_constraint=GreaterThan(MINIMA[0]))
        self.covar_module = gpytorch.kernels.ScaleKernel(base, outputscale_constraint=GreaterThan(MINIMA[1]))

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def plain_steps(theta: Sequence[float], batches: Sequence[tuple[Tensor, Tensor]]) -> list[float]:
    """One gpytorch model's Adam steps from θ = (lengthscale, variance, noise): the new θ."""
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=GreaterThan(MINIMA[2]))
    model = PlainGP(*batches[0], likelihood).double()
    kernel: Any = model.covar_module
    kernel.base_kernel.lengthscale, kernel.outputscale, likelihood.noise = theta
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=LR)
    for x, y in batches:
        model.set_train_data(x, y, strict=False)
        optimiser.zero_grad()
        (-objective(model(x), y)).backward()
        optimiser.step()
    return [kernel.base_kernel.lengthscale.item(), kernel.outputscale.item(), likelihood.noise.item()]


def one_by_one(data: dict[int, Federation], plan: Plan, start: Sequence[float], shared: bool) -> np.ndarray:
    """θ of every run [runs, 3] (Separate: of the last device), one model at a time."""
    found = []
    for seed, federation in data.items():
        shares = federation.train.sizes / federation.train.sizes.sum()
        own = [list(start) for _ in range(len(federation))]
        for t in range(ROUNDS):
            rng = streams.generator(plan.experiment, seed, "batches", t)
            drawn = plan.work.draw(federation.train, range(len(federation)), t, rng)
            own = [plain_steps(own[k], [(b.x, b.y) for b in drawn[k]]) for k in range(len(federation))]
            if shared:
                own = [list(shares @ np.array(own))] * len(own)
        found.append(own[-1])
    return np.array(found)


def together(data: dict[int, Federation], plan: Plan, task: Task, shared: bool) -> np.ndarray:
    """The same by the engine, all runs and devices at once."""
    algorithm = FGPR(lr=LR) if shared else GPSeparate(lr=LR)
    replicates = []
    for seed, federation in data.items():
        problem = Problem(task, federation, plan.participation.shares(federation), 5)
        replicates.append(Replicate("", seed, algorithm, problem, task.parameters()))
        replicates[-1].state = algorithm.init(problem, replicates[-1].w)
    run = strategy("vmap")
    for t in range(ROUNDS):
        advance(task, replicates, plan, run, t)
    models = [r.algorithm.model(r.state, r.local_of(1), 1) for r in replicates]
    return np.array([[v.item() for v in w.values()] for w in models])


def gp_task() -> Task:
    return Task(build(parts.model("gaussian_process"), (2,), 1, streams.torch_generator("bench", 0, "init")).double())


def measure(runs: int = RUNS, repeats: int = 3) -> tuple[pd.DataFrame, float]:
    """Seconds of both ways, and the largest difference of their θ."""
    data, task = federations(runs), gp_task()
    start = [v.item() for v in task.parameters().values()]
    plan = Plan("bench", ROUNDS, WORK, Participation(), evaluate_every=10**9, client_metrics="never")
    rows, apart = [], 0.0
    for name, shared in (("FGPR", True), ("Separate", False)):
        seconds: dict[str, list[float]] = {TOGETHER: [], ALONE: []}
        for repeat in range(repeats + 1):
            begin = time.perf_counter()
            ours = together(data, plan, task, shared)
            middle = time.perf_counter()
            theirs = one_by_one(data, plan, start, shared)
            if repeat:  # the first is a warm-up
                seconds[TOGETHER].append(middle - begin)
                seconds[ALONE].append(time.perf_counter() - middle)
            apart = max(apart, float(np.abs(ours - theirs).max()))
        median = {way: statistics.median(own) for way, own in seconds.items()}
        for way, own in median.items():
            line = {"method": name, "runs": runs, "way": way, "median_s": own, "times_faster": median[ALONE] / own}
            rows.append(line)
    return pd.DataFrame(rows), apart


def gp_round(devices: int) -> Callable[[int], Any]:
    """A function that runs round t of FGPR: every device takes five steps on batches of 32 of its 64 points."""
    rng = streams.generator("bench", devices, "data")
    rows = devices * POINTS
    x = torch.from_numpy(rng.uniform(size=(rows, 2)))
    y = torch.sin(6 * x[:, 0]) + 0.1 * torch.from_numpy(rng.normal(size=rows))
    data = Federation(Holdings(Samples(x, y), np.arange(rows), np.arange(devices + 1) * POINTS))
    task = gp_task()
    plan, replicate = one_run(task, data, LocalWork(steps=5, batch=32), FGPR(lr=0.01), devices)
    run = strategy("vmap")
    return lambda t: advance(task, [replicate], plan, run, t)


def growth(repeats: int = 40, devices: Sequence[int] = DEVICES) -> pd.DataFrame:
    """One row per number of devices: seconds per round with their spread, and their ratio to the smallest size's."""
    found = times({n: gp_round(n) for n in devices}, repeats)
    spread = [(n, statistics.median(own), iqr(own), times_as_long(own, found[devices[0]])) for n, own in found.items()]
    return pd.DataFrame(spread, columns=["devices", "median_s", "iqr_s", "times_the_smallest"])


def main(arguments: Sequence[str] = ()) -> int:
    torch.set_num_threads(1)
    keep_freed_memory()
    table, apart = measure(repeats=int(arguments[0]) if arguments else 3)
    write("gp", table, digits=3, told=f"largest difference of θ: {apart:.1e}\n", largest_difference=apart)
    write("gp_growth", growth(), digits=4)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
