"""Gaussian process regression on each device's own data (thesis ch. 4): the parameters are those of a prior, θ.

    f_k ~ GP(0, θ₁² k(·, ·; l)),  y = f_k(x) + θ₂ N(0, 1)

Loss of a batch: its negative log marginal likelihood (eq. 4.2) divided by its size. A batch's gradient is a biased
estimate of the device's: the objective is no sum over samples (§4.3.1). Prediction (eq. 4.1) conditions on the device's
own training data, so a test needs the device.

Parameters on their natural scale: lengthscale [S, p], signal [S], noise [S], for S independent outputs and one
lengthscale or (`ard`) one per input. signal and noise are the variances θ₁², θ₂², as in the released code, or with
`deviations` θ₁ and θ₂, as in the theorems. `start`: by default log 2 above the least values of the released code, which
are added after a softplus (`to_raw`, `from_raw`). `minima` and `maxima` bound the parameter space, which is compact in
Assumption 20.1; a softplus has no upper end.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.core.federation import Batch
from fedrepro.core.model import AssessingModel, Assessment, Example
from fedrepro.core.params import Params
from fedrepro.studies.fgpr.gp.device_errors import Prediction, along, columns, curve, device_errors, output_names
from fedrepro.studies.fgpr.gp.exact import Theta, fit, likelihood, predict_from
from fedrepro.studies.fgpr.gp.maximum_likelihood import MINIMA

NAMES = ("lengthscale", "signal", "noise")


class GaussianProcess(AssessingModel):
    """curve: points of a prediction along x that an assessment adds, for inputs of one dimension."""

    objective = "half_squared_error"
    example = Example(outputs=1)
    mean_loss = False

    def __init__(
        self,
        inputs: tuple[int, ...],
        outputs: int = 1,
        kernel: str = "rbf",
        ard: bool = False,
        deviations: bool = False,
        start: Sequence[float] | None = None,
        minima: Sequence[float] = MINIMA,
        maxima: Sequence[float] = (math.inf,) * 3,
        curve: int = 0,
    ):
        super().__init__()
        (dimensions,) = inputs
        self.kernel, self.ard, self.power, self.curve = kernel, ard, 2 if deviations else 1, curve
        self.minima, self.maxima = (dict(zip(NAMES, ends, strict=True)) for ends in (minima, maxima))
        self.outputs_apart = outputs
        self.begin = [math.log(2) + least for least in minima] if start is None else list(start)
        self.lengthscale = nn.Parameter(torch.empty(outputs, dimensions if ard else 1))
        self.signal, self.noise = (nn.Parameter(torch.empty(outputs)) for _ in range(2))

    def initialise(self, generator: torch.Generator) -> None:
        for parameter, value in zip((self.lengthscale, self.signal, self.noise), self.begin, strict=True):
            parameter.fill_(value)

    def forward(self, x: Tensor) -> Tensor:
        """The prior's mean, [B]."""
        return x.new_zeros(len(x)) + 0 * self.signal[0]

    def theta(self, w: Params) -> Theta:
        return Theta(w["lengthscale"], w["signal"] ** self.power, w["noise"] ** self.power)

    def from_theta(self, theta: Theta) -> Params:
        lengthscale, *variances = theta
        return Params(zip(NAMES, (lengthscale, *(v ** (1 / self.power) for v in variances)), strict=True))

    def to_raw(self, w: Params) -> Params:
        """The inverse of softplus(raw) + least value."""
        over = {name: (value - self.minima[name]).clamp_min(1e-12) for name, value in w.items()}
        return Params({name: value + torch.log(-torch.expm1(-value)) for name, value in over.items()})

    def from_raw(self, raw: Params) -> Params:
        return Params({name: F.softplus(value) + self.minima[name] for name, value in raw.items()})

    def project(self, w: Params) -> Params:
        return Params({name: value.clamp(self.minima[name], self.maxima[name]) for name, value in w.items()})

    def batch_loss(self, w: Params, batch: Batch) -> Tensor:
        return self._both(w, batch)[0]

    def batch_gradient(self, w: Params, batch: Batch) -> Params:
        return Params(zip(NAMES, self._both(w, batch)[1:], strict=True))

    def _both(self, w: Params, batch: Batch) -> tuple[Tensor, ...]:
        """The outputs' mean loss, summed, and its gradient in lengthscale, signal and noise."""
        theta, mask = self.theta(w), batch.weight
        y = batch.y[None] if batch.y.ndim == 1 else batch.y.mT
        mask = torch.ones_like(batch.y if batch.y.ndim == 1 else batch.y[:, 0]) if mask is None else mask
        values = _Likelihood.apply(*theta, batch.x, y, mask, self.kernel)
        loss, *gradient = (value / mask.sum() for value in values)
        for i, name in enumerate(NAMES[1:], start=1):
            gradient[i] = gradient[i] * self.power * w[name] ** (self.power - 1)
        return loss.sum(), *gradient

    @torch.no_grad()
    def assess(self, problem: Problem, models: dict[int, Params], split: str) -> Assessment:
        """Loss: the likelihood on the training data, the mean negative log density of each target elsewhere."""
        federation = problem.federation
        train, holdings = federation.train, getattr(federation, split)
        losses, jitter = np.zeros(len(holdings)), 0.0
        predictions: dict[int, Prediction] = {}
        metrics: list[Metric] = []
        for k, w in models.items():
            theta, batch = self.theta(w), train.full_batch(k)
            x, y = batch.x, columns(batch.y).mT
            fitted = fit(self.kernel, theta, x, y)
            jitter = max(jitter, fitted.jitter.max().item())
            if split == "train":
                # k(X, X)C⁻¹y = y − θ₂²C⁻¹y
                predictions[k] = (y - (theta.noise + fitted.jitter)[:, None] * fitted.weights).mT, None
                determinant = fitted.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
                value = 0.5 * (y * fitted.weights).sum(-1) + determinant + 0.5 * len(x) * math.log(2 * math.pi)
                losses[k] = (value / len(x)).mean().item()
            else:
                x_new = holdings.samples.x[holdings.of(k)]
                mean, variance = predict_from(self.kernel, theta, fitted, x, x_new, noisy=True)
                predictions[k] = mean.mT, variance.mT
            if self.curve and split == "train":
                x_new = along(federation, k, self.curve)
                mean, variance = predict_from(self.kernel, theta, fitted, x, x_new)
                metrics += curve(k, x=x_new[:, 0], mean=mean[0], sd=variance[0].sqrt())
        mse, errors = device_errors(predictions, federation, split, output_names(federation, self.outputs_apart))
        if split != "train":
            density = [m.value for m in errors if m.metric == "nlpd"]
            losses[list(models)] = float(np.mean(density))
        return losses, mse, [*metrics, *errors, Metric("jitter", jitter, split)]


class _Likelihood(torch.autograd.Function):
    """`likelihood` of one batch for all outputs, which under vmap becomes one call for all clients."""

    generate_vmap_rule = False

    @staticmethod
    def forward(
        lengthscale: Tensor, variance: Tensor, noise: Tensor, x: Tensor, y: Tensor, mask: Tensor, kernel: str
    ) -> tuple[Tensor, ...]:
        # x [*, B, d] serves the S outputs: y [*, S, B]
        found = likelihood(kernel, Theta(lengthscale, variance, noise), x.unsqueeze(-3), y, mask.unsqueeze(-2))
        return found.value, *found.gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        def front(value: Any, dim: int | None) -> Any:
            if not isinstance(value, Tensor):
                return value
            return value.expand(info.batch_size, *value.shape) if dim is None else value.movedim(dim, 0)

        out = _Likelihood.apply(*(front(v, dim) for v, dim in zip(arguments, in_dims, strict=True)))
        return out, (0,) * len(out)
