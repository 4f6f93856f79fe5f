"""Deep: the multi-fidelity deep Gaussian process (Cutajar, Pullin, Damianou, Lawrence & González 2019).

    f_1 ~ GP(0, k(x, x')),   f_t(x) = g_t(x, f_{t−1}(x)),
    g_t ~ GP(0, k_corr(x, x') · (k_prev(f, f') + linear(f, f')) + k_in(x, x'))

Each layer is a sparse variational process of gpytorch. Its inducing points are fixed: inputs of its level, with the
means of the layers below. The bound Σ_t E log p(y_t | f_t) − Σ_t KL_t needs the law of f_{t−1} at single inputs only.
Deviations: these expectations are Gauss–Hermite sums (`nodes` per layer) instead of 250 samples, so bound and
predictions are free of sampling noise; Adam starts from a recursive fit (as in Perdikaris et al. 2017: level by level,
given the means below, by L-BFGS with q in closed form) and takes hundreds of steps instead of 35,000; inducing points
are up to `inducing` random samples of a level instead of all of the lowest and half of the others.

All repeats are one batch axis R: data is a list of (x [R, n_t, d], y [R, n_t]) from the lowest level to the highest;
predictions, of the highest, are the mean and variance of a mixture: [R, m].
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import gpytorch
import numpy as np
import torch
from gpytorch.kernels import Kernel, LinearKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from linear_operator import to_dense
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from fedrepro.studies.fgpr.gp.exact import Data, Law
from fedrepro.studies.fgpr.gp.kernels import scaled_kernel
from fedrepro.studies.fgpr.gp.maximum_likelihood import LENGTHSCALES, NOISE_FLOOR, Effort
from fedrepro.studies.fgpr.gp.search import gaussian_likelihood, no_jitter_warnings
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP

SMALLEST_VARIANCE = 1e-10  # of an input to the next layer; the root has no slope at 0
PREDICTED_AT_ONCE = 250  # inputs
JITTER = gpytorch.settings.variational_cholesky_jitter.value(torch.float64)


class DenseLinearKernel(LinearKernel):
    """gpytorch's kernel as a matrix. Its low-rank form may be decomposed into singular values in a sum of kernels, and
    the gradient of two equal ones is not a number."""

    def forward(self, *inputs: Tensor, **options: Any) -> Tensor:
        return to_dense(super().forward(*inputs, **options))


def layer_kernel(inputs: int, below: bool, ard: bool, batch: tuple[int, ...] = ()) -> Kernel:
    """The lowest layer's kernel of x, or that of (x, f) for a layer above."""
    if not below:
        return scaled_kernel("rbf", inputs, ard, batch)
    shape, own = torch.Size(batch), tuple(range(inputs))

    def of_x() -> ScaleKernel:
        base = RBFKernel(ard_num_dims=inputs if ard else None, active_dims=own, batch_shape=shape)
        return ScaleKernel(base, batch_shape=shape)

    previous = RBFKernel(active_dims=(inputs,), batch_shape=shape)
    linear = DenseLinearKernel(active_dims=(inputs,), batch_shape=shape)
    return of_x() * (previous + linear) + of_x()


class Layer(gpytorch.models.ApproximateGP):
    """q(g_t) of all repeats, with fixed points [R, M, p]."""

    def __init__(self, points: Tensor, kernel: Kernel):
        shape = points.shape[:-2]
        q = CholeskyVariationalDistribution(points.shape[-2], batch_shape=shape)
        super().__init__(VariationalStrategy(self, points, q, learn_inducing_locations=False))
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(batch_shape=shape), kernel

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    @torch.no_grad()
    def set_best(self, fits: list[DistributedVariationalGP]) -> None:
        """The best q for each repeat's fit, in closed form: N(B⁻¹a/σ², B⁻¹) of the whitened values."""
        q = self.variational_strategy._variational_distribution
        for r, fit in enumerate(fits):
            root, c = fit.server(fit.sums)
            q.variational_mean[r] = torch.linalg.solve_triangular(root.mT, c, upper=True)[:, 0]
            q.chol_variational_covar[r] = psd_safe_cholesky(torch.cholesky_inverse(root))
        self.variational_strategy.variational_params_initialized.fill_(1)


@dataclass
class MultiFidelityDeepGP:
    ard: bool = True
    inducing: int = 100
    nodes: int = 5
    steps: int = 100
    lr: float = 0.003
    noise_floor: float = NOISE_FLOOR
    evaluations: int = 80

    def fit(self, data: Data, rng: np.random.Generator) -> Self:
        self.effort = Effort()
        self.layers: Any = torch.nn.ModuleList()
        self.likelihoods: Any = torch.nn.ModuleList()
        z, w = np.polynomial.hermite_e.hermegauss(self.nodes)
        self.node = torch.from_numpy(z).to(data[0][0])
        self.node_weight = torch.from_numpy(w / w.sum()).to(self.node)
        with no_jitter_warnings():
            self._start(data, rng)
            self._train(data)
        return self

    def _start(self, data: Data, rng: np.random.Generator) -> None:
        """Level by level, each repeat's own fit given the means below; its kernel, noise and q become a layer."""
        below: list[list[DistributedVariationalGP]] = []  # per level, one per repeat
        for t, (x, y) in enumerate(data):
            inputs = _with_means(below, x)
            chosen = torch.from_numpy(rng.permutation(x.shape[1])[: self.inducing])
            points = inputs[:, chosen].clone()
            fits = [self._fit_level(*own, t > 0) for own in zip(inputs, y, points, strict=True)]
            kernel = layer_kernel(x.shape[-1], t > 0, self.ard, x.shape[:1]).to(x)
            likelihood = gaussian_likelihood(self.noise_floor, x.shape[:1]).to(x)
            _stack_into(kernel, [fit.kernel for fit in fits])
            _stack_into(likelihood, [fit.likelihood for fit in fits])
            layer = Layer(points, kernel).to(x)
            layer.set_best(fits)
            self.layers.append(layer)
            self.likelihoods.append(likelihood)
            below.append(fits)

    def _fit_level(self, x: Tensor, y: Tensor, points: Tensor, below: bool) -> DistributedVariationalGP:
        """Titsias' bound of one level of one repeat; with all samples as inducing points it is the likelihood."""
        kernel = layer_kernel(x.shape[-1] - below, below, self.ard).to(x)
        likelihood = gaussian_likelihood(self.noise_floor).to(x)
        fit = DistributedVariationalGP(move_inducing=False, evaluations=self.evaluations, jitter=JITTER)
        fit.fit_from([(x, y)], kernel, likelihood, points, _starts(kernel, likelihood, max(1e-2, 2 * self.noise_floor)))
        self.effort = self.effort.plus(fit.effort, last=False)
        return fit

    def _train(self, data: Data) -> None:
        """Adam on the bounds of all repeats at once; each repeat keeps its best point."""
        parameters = [p for p in [*self.layers.parameters(), *self.likelihoods.parameters()] if p.requires_grad]
        best = [p.detach().clone() for p in parameters]
        with torch.no_grad():
            self.bounds = self.start_bounds = self.bound(data)
        optimiser = torch.optim.Adam(parameters, self.lr)
        for _ in range(self.steps):
            optimiser.zero_grad()
            bounds = self.bound(data)
            with torch.no_grad():
                for kept, p in zip(best, parameters, strict=True):
                    kept[bounds > self.bounds] = p[bounds > self.bounds]
            self.bounds = torch.maximum(bounds.detach(), self.bounds)
            (-bounds).sum().backward()
            _skip_broken(parameters)
            optimiser.step()
        with torch.no_grad():
            for p, kept in zip(parameters, best, strict=True):
                p.copy_(kept)

    def law(self, x: Tensor, level: int) -> tuple[Tensor, Tensor, Tensor]:
        """The law of f_level at x [R, n, d] as a mixture: means and variances [P, R, n], weights [P]."""
        q = self.layers[0](x)
        mean, variance, weight = q.mean[None], q.variance[None], self.node_weight.new_ones(1)
        for layer in list(self.layers)[1 : level + 1]:
            spread = variance.clamp_min(SMALLEST_VARIANCE).sqrt()
            f = (mean + spread * self.node[:, None, None, None]).flatten(0, 1)  # [nodes · P, R, n]
            q = layer(torch.cat([x.expand(len(f), *x.shape), f[..., None]], -1))
            mean, variance = q.mean, q.variance
            weight = (self.node_weight[:, None] * weight).flatten()
        return mean, variance, weight

    def bound(self, data: Data) -> Tensor:
        """The lower bound of log p(y) per sample: [R]."""
        total: Any = 0.0
        for t, ((x, y), layer, likelihood) in enumerate(zip(data, self.layers, self.likelihoods, strict=True)):
            mean, variance, weight = self.law(x, t)
            square, noise = (y - mean).square() + variance, likelihood.noise
            expected = -0.5 * (square / noise + torch.log(2 * torch.pi * noise)).sum(-1)
            total = total + (weight[:, None] * expected).sum(0) - layer.variational_strategy.kl_divergence()
        return total / sum(y.shape[-1] for _, y in data)

    @torch.no_grad()
    def predict(self, x: Tensor) -> Law:
        """x [R, m, d] → mean and variance [R, m] of observations."""
        self.layers.eval()
        laws = []
        with no_jitter_warnings():
            for part in x.split(PREDICTED_AT_ONCE, 1):
                mean, variance, weight = self.law(part, len(self.layers) - 1)
                weight = weight[:, None, None]
                centre = (weight * mean).sum(0)
                laws.append((centre, (weight * (variance + (mean - centre).square())).sum(0)))
        mean, variance = (torch.cat(own, 1) for own in zip(*laws, strict=True))
        return mean, variance + self.likelihoods[-1].noise


def _starts(kernel: Kernel, likelihood: GaussianLikelihood, noise: float) -> Iterator[Callable[[], None]]:
    """The first two lengthscales of the other methods; gpytorch's defaults for the rest."""
    begin = [p.detach().clone() for p in kernel.parameters()]

    def put(lengthscale: float) -> None:
        for p, value in zip(kernel.parameters(), begin, strict=True):
            p.copy_(value)
        for part in kernel.modules():
            if isinstance(part, RBFKernel):
                part.lengthscale = lengthscale
        likelihood.noise = noise

    return (partial(put, lengthscale) for lengthscale in LENGTHSCALES[:2])


def _with_means(below: list[list[DistributedVariationalGP]], x: Tensor) -> Tensor:
    """x [R, n, d] with the mean of the fits below: [R, n, d] or [R, n, d + 1]."""
    inputs = x
    for fits in below:
        means = torch.stack([fit.predict(own)[0] for fit, own in zip(fits, inputs, strict=True)])
        inputs = torch.cat([x, means[..., None]], -1)
    return inputs


@torch.no_grad()
def _stack_into(batched: torch.nn.Module, singles: Sequence[torch.nn.Module]) -> None:
    """Copy the parameters of one module per repeat into one module with a batch axis."""
    for name, parameter in batched.named_parameters():
        parameter.copy_(torch.stack([single.get_parameter(name) for single in singles]).view_as(parameter))


@torch.no_grad()
def _skip_broken(parameters: Sequence[Tensor]) -> None:
    """Zero the gradients of repeats where one is not finite: the others go on."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    broken = torch.stack([~g.reshape(len(g), -1).isfinite().all(1) for g in gradients]).any(0)
    for g in gradients:
        g[broken] = 0.0
