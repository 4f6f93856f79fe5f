"""`make bench`, Gaussian processes: FGPR and Separate on CURRIN for many runs, all at once, beside one gpytorch model
at a time, in one process and alternating. Into results/bench/gp.csv.

The case is Table 4.2's: two devices (40 and 200 samples), batches of 40 nearest neighbours, one epoch a round, Adam.
Both sides take the same gradient steps; the gpytorch side is its own ExactGP, ExactMarginalLogLikelihood and torch's
Adam, a model a device and run, with the parameters averaged by hand after every round.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fedrepro.bench.common import write
from fedrepro.core import parts, streams
from fedrepro.core.algorithm import Problem
from fedrepro.core.clients import strategy
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.initial import build
from fedrepro.core.rounds import Participation, Plan, Replicate, advance
from fedrepro.core.task import Task
from fedrepro.data.source import Source
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR
from fedrepro.studies.fgpr.algorithms.gp_separate import GPSeparate
from fedrepro.studies.fgpr.gp.maximum import MINIMA
from fedrepro.workflow.train_job import keep_freed_memory

RUNS, ROUNDS, LR = 30, 2, 0.01
WORK = LocalWork(epochs=1, batch=40, nearest=True)


def federations(runs: int) -> dict[int, Federation]:
    """CURRIN's devices, all runs on shared tensors."""
    parts, start = {}, 0
    xs, ys = [], []
    for seed in range(runs):
        data = parts.dataset("multi_fidelity").load(Source(streams.generator("bench", seed, "data")), function="currin")
        sizes = np.bincount(data.train.client)
        parts[seed] = (start + np.arange(len(data.train)), np.cumsum([0, *sizes]))
        start += len(data.train)
        xs.append(data.train.x)
        ys.append(data.train.y)
    samples = Samples(torch.from_numpy(np.concatenate(xs)), torch.from_numpy(np.concatenate(ys)))
    return {seed: Federation(Holdings(samples, *part)) for seed, part in parts.items()}


def plain_steps(theta: Sequence[float], batches: Sequence[tuple[Tensor, Tensor]]) -> list[float]:
    """One gpytorch model's Adam steps from θ = (lengthscale, variance, noise): the new θ."""
    import gpytorch
    from gpytorch.constraints import GreaterThan

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            base = gpytorch.kernels.RBFKernel(lengthscale_constraint=GreaterThan(MINIMA[0]))
            self.covar_module = gpytorch.kernels.ScaleKernel(base, outputscale_constraint=GreaterThan(MINIMA[1]))

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=GreaterThan(MINIMA[2]))
    model = Model(*batches[0], likelihood).double()
    model.covar_module.base_kernel.lengthscale, model.covar_module.outputscale, likelihood.noise = theta
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=LR)
    for x, y in batches:
        model.set_train_data(x, y, strict=False)
        optimiser.zero_grad()
        (-objective(model(x), y)).backward()
        optimiser.step()
    kernel = model.covar_module
    return [kernel.base_kernel.lengthscale.item(), kernel.outputscale.item(), likelihood.noise.item()]


def one_by_one(data: dict[int, Federation], plan: Plan, start: Sequence[float], shared: bool) -> np.ndarray:
    """θ of every run [runs, 3] (Separate: of the last device), a model at a time."""
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


def measure(runs: int = RUNS, repeats: int = 3) -> tuple[pd.DataFrame, float]:
    """Seconds of both ways, and the largest difference of their θ."""
    data = federations(runs)
    task = Task(build(parts.model("gaussian_process"), (2,), 1, streams.torch_generator("bench", 0, "init")).double())
    start = [v.item() for v in task.parameters().values()]
    plan = Plan("bench", ROUNDS, WORK, Participation(), evaluate_every=10**9, client_metrics="never")
    rows, apart = [], 0.0
    for name, shared in (("FGPR", True), ("Separate", False)):
        times: dict[str, list[float]] = {"all at once": [], "one gpytorch model at a time": []}
        for repeat in range(repeats + 1):
            begin = time.perf_counter()
            ours = together(data, plan, task, shared)
            middle = time.perf_counter()
            theirs = one_by_one(data, plan, start, shared)
            if repeat:  # the first is a warm-up
                times["all at once"].append(middle - begin)
                times["one gpytorch model at a time"].append(time.perf_counter() - middle)
            apart = max(apart, float(np.abs(ours - theirs).max()))
        slow = statistics.median(times["one gpytorch model at a time"])
        for way, seconds in times.items():
            median = statistics.median(seconds)
            rows.append({"method": name, "runs": runs, "way": way, "median_s": median, "times_faster": slow / median})
    return pd.DataFrame(rows), apart


def main(arguments: list[str]) -> int:
    torch.set_num_threads(1)
    keep_freed_memory()
    table, apart = measure(repeats=int(arguments[0]) if arguments else 3)
    write("gp", table, digits=3, told=f"largest difference of θ: {apart:.1e}\n", largest_difference=apart)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
