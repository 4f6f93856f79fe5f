"""Estimators of linear models: closed forms, the covariance Ω between devices, and the errors of new devices.

Parameters Θ of K devices are rows: theta [K, P], P = d·S for S independent outputs.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.models.linear_outputs import LinearOutputs, square_errors

SIZES = (0, 1, 2, 3, 4, 6, 8, 16, 32)  # samples of a new device


def least_squares(x: Tensor, y: Tensor) -> Tensor:
    """The shortest θ of least squared error, also for n < d: x [n, d], y [n, S] → [d, S]; 0 without samples."""
    if not len(y):
        return y.new_zeros(x.shape[1], y.shape[1])
    return torch.linalg.lstsq(x, y, driver="gelsd").solution


def ridge(curvature: Tensor, linear: Tensor, penalty: float) -> Tensor:
    """argmin (1/n)Σ(y − xᵀθ)² + λ‖θ‖² from H [K, d, d] and b [K, d, S]: [K, d, S]."""
    return torch.linalg.solve(curvature + penalty * torch.eye(curvature.shape[-1]).to(curvature), linear)


def posterior_mean(gram: Tensor, moment: Tensor, omega: Tensor, variance: float) -> Tensor:
    """E[Θ | data] [K, d] under the prior of eq. (3.2) and noise σ²: gram [K, d, d] are the devices' XXᵀ, moment [K, d]
    their XY, omega [K, K]. With M = Ω ⊗ I and the block-diagonal P of XXᵀ/σ² it is (I + MP)⁻¹ M XY/σ²; Ω may have any
    rank, since it is not inverted."""
    clients, d = moment.shape
    m = torch.kron(omega, torch.eye(d).to(omega))
    mp = (m.view(-1, clients, d)[:, :, None, :] @ (gram / variance)[None]).reshape(clients * d, clients * d)
    right = m @ moment.reshape(-1) / variance
    return torch.linalg.solve(torch.eye(clients * d).to(mp) + mp, right).view(clients, d)


def by_output(theta: Tensor, outputs: int) -> Tensor:
    """[K, d·S] → [S, K, d]."""
    return theta.view(len(theta), -1, outputs).permute(2, 0, 1)


def pulls(each: Tensor, omega: Tensor, jitter: float = 0.0) -> Tensor:
    """p_k = Σ_i θ_i Ω⁻¹_ik for every device, [S, K, d] like `each`; omega [S, K, K]. The inverse is of Ω + jitter ·
    mean(diag Ω) · I; if even this is singular, the result is not finite and the engine records a diverged run."""
    if jitter:
        omega = omega.clone()
        diagonal = omega.diagonal(dim1=-2, dim2=-1)
        diagonal += jitter * diagonal.mean(-1, keepdim=True)
    solved, _ = torch.linalg.solve_ex(omega, each)
    return solved


def updated(omega: Tensor, each: Tensor, kept: float, alpha: float, divisor: float | None = None) -> Tensor:
    """kept · Ω + (α/d) ΘᵀΘ for every output, [S, K, K]: each [S, K, d]; `divisor` replaces d."""
    each = each.contiguous()
    return torch.baddbmm(omega, each, each.mT, beta=kept, alpha=alpha / (divisor or each.shape[-1]))


def parameter_errors(theta: Tensor, problem: Problem) -> Iterator[Metric]:
    """Per output, for data with known true parameters, theta [K, P]: parameter_error, ‖Θ̂ − Θ*‖/√K (§3.5.1), and
    relative_error, ‖Θ̂ − Θ*‖/‖Θ*‖, in the Frobenius norm; with the suffix _one in the one-norm, the largest of the
    devices' sums of |θ̂ − θ*| (the thesis does not name its norm; the default of R's `norm` is the one-norm)."""
    facts, model = problem.federation.facts, problem.task.model
    if "theta" not in facts or not isinstance(model, LinearOutputs):
        return
    true = model.repeated(torch.from_numpy(facts["theta"]).to(theta).view(len(theta), -1, model.targets))
    true = by_output(true.reshape(theta.shape), model.outputs_apart)
    off = by_output(theta, model.outputs_apart) - true  # [S, K, d]
    norms = {"": lambda m: m.flatten(1).norm(dim=1), "_one": lambda m: m.abs().sum(-1).amax(-1)}
    for suffix, norm in norms.items():
        for name, error, whole in zip(model.names(facts), norm(off).tolist(), norm(true).tolist(), strict=True):
            yield Metric(f"parameter_error{suffix}", error / math.sqrt(len(theta)), "server", group=name)
            yield Metric(f"relative_error{suffix}", error / whole if whole else math.inf, "server", group=name)


def shrink(x: Tensor, y: Tensor, mean: Tensor, tau: Tensor, variance: Tensor | float) -> Tensor:
    """The posterior mean under θ ~ N(μ, diag τ) and noise σ²: x [m, n, d], y [m, n], mean and tau [d] → [m, d]."""
    precision = x.mT @ x / variance + torch.diag(1 / tau)
    return torch.linalg.solve(precision, (x.mT @ y[..., None])[..., 0] / variance + mean / tau)


def nearest(x: Tensor, y: Tensor, start: Tensor) -> Tensor:
    """The least-squares θ nearest to a start [d], the limit of gradient descent from there: as `shrink`."""
    if not x.shape[1]:
        return start.expand(len(x), -1)
    return start + (torch.linalg.pinv(x) @ (y - x @ start)[..., None])[..., 0]


def errors(problem: Problem, newcomers: int, ways: dict[str, Callable[[Tensor, Tensor], Tensor]]) -> Iterator[Metric]:
    """New devices (thesis §3.4.2.1, "fast adaption") did not take part and have n training samples, n in SIZES (the
    `step`). The mean of their test RMSEs, noise included, by each way from (x [m, n, d], y [m, n]) to θ [m, d]."""
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
