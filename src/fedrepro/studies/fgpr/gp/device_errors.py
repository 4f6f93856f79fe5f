"""Errors on each device as chapter 4 of the thesis measures them, for models with several independent outputs.

Per output: rmse of every device, a_rmse their mean ("averaged RMSE"), sd_rmse their standard deviation, and
a_rmse_trivial, the averaged RMSE of predicting the mean of the device's own training targets. For a normal predictive
law also nlpd, crps and coverage_p (scores.py), and coverage, that of 95 %.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric
from fedrepro.core.federation import Federation
from fedrepro.studies.fgpr.gp.scores import scores


class Prediction(NamedTuple):
    """Of one device's rows of a split: mean [n, S], and the variance of an observation [n, S] if there is one."""

    mean: Tensor
    variance: Tensor | None = None


class Curve(NamedTuple):
    """A prediction along x [m] (inputs of one dimension): mean [m], sd [m] of the function if there is one."""

    x: Tensor
    mean: Tensor
    sd: Tensor | None = None

    def metrics(self, client: int) -> Iterator[Metric]:
        for name, values in self._asdict().items():
            for i, value in enumerate([] if values is None else values.tolist()):
                yield Metric(f"curve_{name}", value, client=client, step=i)


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
    predictions: dict[int, Prediction],
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
    rmse = torch.stack(squares).sqrt()  # [devices, S]
    found = {"a_rmse": rmse.mean(0), "a_rmse_trivial": torch.stack(trivial).sqrt().mean(0)}
    if len(rmse) > 1:
        found["sd_rmse"] = rmse.std(0)
    if laws:
        found |= {name: torch.stack([law[name] for law in laws]).mean(0) for name in laws[0] if name != "rmse"}
        found["coverage"] = found["coverage_95"]
    metrics = [
        Metric(metric, value, split, group=name)
        for metric, values in found.items()
        for name, value in zip(names, values.tolist(), strict=True)
    ]
    for k, errors in zip(predictions, rmse.tolist(), strict=True):
        metrics += [Metric("rmse", e, split, k, name) for name, e in zip(names, errors, strict=True)]
    mse = np.zeros(len(holdings))
    mse[list(predictions)] = torch.stack(squares).mean(1).cpu().numpy()
    return mse, metrics


def along(federation: Federation, client: int, points: int) -> Tensor:
    """`points` inputs [points, 1] from a device's least to its greatest."""
    x = federation.train.samples.x[federation.train.of(client)]
    least, greatest = x.min().item(), x.max().item()
    return torch.linspace(least, greatest, points, dtype=x.dtype, device=x.device)[:, None]
