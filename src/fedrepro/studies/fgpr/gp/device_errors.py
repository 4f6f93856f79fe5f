"""Errors as chapter 4 of the thesis measures them: of predictions on each device, and of estimated parameters.

Per output (models may have several, independent): rmse of every device, a_rmse their mean ("averaged RMSE"), sd_rmse
their standard deviation, and a_rmse_trivial, the averaged RMSE of predicting the mean of the device's own training
targets. For a normal predictive law N(m, v) also scores at held-out targets y, over the last axis: [..., n] → [...]:
- nlpd, the mean of −log N(y; m, v);
- crps, the mean of ∫ (F(t) − 1{t ≥ y})² dt = s (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with s² = v, z = (y − m)/s;
- coverage_p, the share of targets inside the central p % interval: p/100 where the law is calibrated; coverage is that
  of 95 %.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Normal

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.core.federation import Federation
from fedrepro.core.params import Params
from fedrepro.errors import UserError

LEVELS = (50, 80, 90, 95)
SMALLEST_VARIANCE = 1e-12  # rounding may leave 0
#: of one device's rows of a split: mean [n, S], and the variance of an observation [n, S] if there is one
Prediction = tuple[Tensor, Tensor | None]


def rmse(mean: Tensor, y: Tensor) -> Tensor:
    return (mean - y).square().mean(-1).sqrt()


def _sd(variance: Tensor) -> Tensor:
    return variance.clamp_min(SMALLEST_VARIANCE).sqrt()


def nlpd(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    return -Normal(mean, _sd(variance)).log_prob(y).mean(-1)


def crps(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    s = _sd(variance)
    z = (y - mean) / s
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    return (s * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))).mean(-1)


def coverage(mean: Tensor, variance: Tensor, y: Tensor, level: float) -> Tensor:
    """level in percent."""
    half = math.sqrt(2) * torch.erfinv(torch.tensor(level / 100, dtype=torch.float64)).item()
    return ((y - mean).abs() <= half * _sd(variance)).to(mean.dtype).mean(-1)


def scores(mean: Tensor, variance: Tensor, y: Tensor) -> dict[str, Tensor]:
    found = {"rmse": rmse(mean, y), "nlpd": nlpd(mean, variance, y), "crps": crps(mean, variance, y)}
    return found | {f"coverage_{level}": coverage(mean, variance, y, level) for level in LEVELS}


def columns(y: Tensor) -> Tensor:
    """Targets as [n, S]."""
    return y[:, None] if y.ndim == 1 else y


def output_names(federation: Federation, outputs: int) -> list[str]:
    """Names of the outputs, from the data set's facts; a single output has none."""
    for fact in ("outputs", "sensors"):
        names = np.atleast_1d(federation.facts.get(fact, ()))
        if len(names) == outputs > 1:
            return [str(name) for name in names.tolist()]
    return [str(s + 1) for s in range(outputs)] if outputs > 1 else [""]


def device_errors(
    predictions: Mapping[int, Prediction],
    federation: Federation,
    split: str,
    names: Sequence[str],
    targets: Callable[[Tensor], Tensor] = columns,
) -> tuple[np.ndarray, list[Metric]]:
    """(mean square error per device [K], averaged over its outputs; the metrics). targets: y in the model's form."""
    holdings = getattr(federation, split)
    squares, trivial, laws = [], [], []
    for k, (mean, variance) in predictions.items():
        y = targets(holdings.samples.y[holdings.of(k)])
        own = targets(federation.train.samples.y[federation.train.of(k)]).mean(0)
        squares.append((mean - y).square().mean(0))
        trivial.append((own - y).square().mean(0))
        if variance is not None:
            laws.append(scores(mean.mT, variance.mT, y.mT))
    each = torch.stack(squares).sqrt()  # [devices, S]
    found = {"a_rmse": each.mean(0), "a_rmse_trivial": torch.stack(trivial).sqrt().mean(0)}
    if len(each) > 1:
        found["sd_rmse"] = each.std(0)
    if laws:
        found |= {name: torch.stack([law[name] for law in laws]).mean(0) for name in laws[0] if name != "rmse"}
        found["coverage"] = found["coverage_95"]
    metrics = [
        Metric(metric, value, split, group=name)
        for metric, values in found.items()
        for name, value in zip(names, values.tolist(), strict=True)
    ]
    for k, errors in zip(predictions, each.tolist(), strict=True):
        metrics += [Metric("rmse", e, split, k, name) for name, e in zip(names, errors, strict=True)]
    mse = np.zeros(len(holdings))
    mse[list(predictions)] = torch.stack(squares).mean(1).cpu().numpy()
    return mse, metrics


def along(federation: Federation, client: int, points: int) -> Tensor:
    """`points` inputs [points, 1] from a device's least to its greatest."""
    x = federation.train.samples.x[federation.train.of(client)]
    least, greatest = x.min().item(), x.max().item()
    return torch.linspace(least, greatest, points, dtype=x.dtype, device=x.device)[:, None]


def curve(client: int, **parts: Tensor) -> list[Metric]:
    """A prediction along x [m] (inputs of one dimension): mean [m], and sd [m] of the function if there is one."""
    named = ((f"curve_{name}", values.tolist()) for name, values in parts.items())
    return [Metric(name, value, client=client, step=i) for name, own in named for i, value in enumerate(own)]


def true_lengthscale(federation: Federation, like: Tensor) -> Tensor:
    """The l of simulated data in the shape of `like` [S, p]; 1 for columns that are all 0, where any value will do."""
    if "lengthscale" not in federation.facts:
        raise UserError("fgpr: known = 'lengthscale': this data set does not know its true lengthscale")
    own = np.where(np.isfinite(federation.facts["lengthscale"]), federation.facts["lengthscale"], 1.0)
    if like.shape[-1] == 1 and len(set(own)) > 1:
        raise UserError("fgpr: known = 'lengthscale': there is one for each input; the model needs ard")
    return torch.from_numpy(own).to(like)[: like.shape[-1]].expand(like.shape).clone()


def parameter_errors(problem: Problem, models: Sequence[Params]) -> Iterator[Metric]:
    """Squared distances from the truth, averaged over `models`; nothing if the data set does not know it."""
    facts = problem.federation.facts
    if not {"signal", "noise", "lengthscale"} <= set(facts):
        return
    model: Any = problem.task.model
    thetas = [model.theta(w) for w in models]
    signal = np.mean([(t.variance.sqrt() - float(facts["signal"])).square().item() for t in thetas])
    noise = np.mean([(t.noise.sqrt() - float(facts["noise"])).square().item() for t in thetas])
    yield Metric("error_signal", signal)
    yield Metric("error_noise", noise)
    if len(thetas) == 1:
        yield Metric("theta_signal", thetas[0].variance.sqrt().item())
        yield Metric("theta_noise", thetas[0].noise.sqrt().item())
    yield Metric("error", signal + noise)
    finite = np.isfinite(facts["lengthscale"])
    truth = torch.from_numpy(facts["lengthscale"][finite])
    off = [(t.lengthscale[0].expand(len(finite))[finite].cpu() - truth).square().sum().item() for t in thetas]
    yield Metric("error_lengthscale", np.mean(off))


def gradient_norm(problem: Problem, w: Params) -> float:
    """‖∇ Σ p_k L_k/N_k‖² in signal and noise, on each device's whole data."""
    parts = [problem.task.gradient(w, problem.whole(k)) for k in range(len(problem.federation.train))]
    total = {
        name: sum(p * g[name] for p, g in zip(problem.weights, parts, strict=True)) for name in ("signal", "noise")
    }
    return float(sum(g.square().sum() for g in total.values()))
