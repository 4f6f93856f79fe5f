"""New devices (thesis §3.4.2.1, "fast adaption"): devices that did not take part, with their first n training samples.

`rmse` is the mean over the new devices of the root mean square error on their test samples, noise included. Ways to θ:
- `shrink`: the posterior mean under θ ~ N(μ, diag τ) and noise σ²;
- `nearest`: the least-squares θ nearest to a start, which is the limit of gradient descent from there.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs, square_errors

SIZES = (0, 1, 2, 3, 4, 6, 8, 16, 32)


def shrink(x: Tensor, y: Tensor, mean: Tensor, tau: Tensor, variance: Tensor | float) -> Tensor:
    """x [m, n, d], y [m, n], mean and tau [d] → [m, d]."""
    precision = x.mT @ x / variance + torch.diag(1 / tau)
    return torch.linalg.solve(precision, (x.mT @ y[..., None])[..., 0] / variance + mean / tau)


def nearest(x: Tensor, y: Tensor, start: Tensor) -> Tensor:
    """x [m, n, d], y [m, n], start [d] → [m, d]."""
    if not x.shape[1]:
        return start.expand(len(x), -1)
    return start + (torch.linalg.pinv(x) @ (y - x @ start)[..., None])[..., 0]


def errors(problem: Problem, newcomers: int, ways: dict[str, Callable[[Tensor, Tensor], Tensor]]) -> Iterator[Metric]:
    """The error of each way from (x [m, n, d], y [m, n]) to θ [m, d], for n in SIZES (the `step`)."""
    train, total = problem.federation.train, len(problem.federation)
    devices = list(range(total - newcomers, total))
    size = min(max(SIZES), int(train.sizes[devices].min()))
    rows = torch.stack([torch.from_numpy(train.of(k)[:size]) for k in devices])
    x, y = train.samples.x[rows], train.samples.y[rows]
    test = problem.summaries("test").of(torch.tensor(devices))
    for n in (n for n in SIZES if n <= size):
        for name, way in ways.items():
            theta = way(x[:, :n], y[:, :n])
            rmse = square_errors(theta[..., None], test).clamp(min=0).sqrt().mean()
            yield Metric("newcomer_rmse", rmse.item(), "test", group=name, step=n)


def require_summaries(problem: Problem, newcomers: int, name: str) -> None:
    """A UserError if test samples cannot be summarised."""
    if newcomers and not (isinstance(problem.task.model, LinearOutputs) and problem.federation.test is not None):
        raise UserError(f"{name}: newcomers = {newcomers}: needs the model linear_outputs and test samples")
