"""Gaussian processes with common hyper-parameters, each conditioned on its own data (thesis eq. 4.1), to convergence.

θ maximises Σ_k log p(y_k | x_k, θ): where Algorithm 4.1 would end with full batches, p_k = n_k/N and as many rounds as
that takes. With one device this is Separate. Laws are zero-mean; kernels are gpytorch's.

Data: a list of (x [n_k, d], y [n_k]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from fedrepro.errors import UserError
from fedrepro.gp.maximise import Effort, jitter_unsaid, maximise

Data = Sequence[tuple[Tensor, Tensor]]
Law = tuple[Tensor, Tensor]  # mean and variance at m inputs: [m], [m]
KERNELS = {"rbf": RBFKernel, "matern32": lambda **options: MaternKernel(nu=1.5, **options)}
NOISE_FLOOR = 1e-6
LENGTHSCALES = (0.5, 0.1)  # of the first starts


def scaled_kernel(name: str, inputs: int, ard: bool, batch: tuple[int, ...] = ()) -> ScaleKernel:
    """σ² k(x, x'), with one lengthscale or (`ard`) one for each input."""
    if name not in KERNELS:
        raise UserError(f"kernel: '{name}' is unknown; one of {', '.join(KERNELS)}")
    shape = torch.Size(batch)
    base = KERNELS[name](ard_num_dims=inputs if ard else None, batch_shape=shape)
    return ScaleKernel(base, batch_shape=shape)


def gaussian_likelihood(floor: float = NOISE_FLOOR, batch: tuple[int, ...] = ()) -> GaussianLikelihood:
    likelihood = GaussianLikelihood(noise_constraint=GreaterThan(floor), batch_shape=torch.Size(batch))
    likelihood.noise_floor = floor
    return likelihood


class ExactRegression(gpytorch.models.ExactGP):
    """One device's zero-mean process; kernel and likelihood may be others' too."""

    def __init__(self, x: Tensor, y: Tensor, likelihood: GaussianLikelihood, kernel: Kernel):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def predict_exact(model: gpytorch.models.ExactGP, x: Tensor, noise: bool) -> Law:
    """The law at x given the model's data; of observations with `noise`, else of the function."""
    model.eval()
    model.likelihood.eval()
    with torch.no_grad(), jitter_unsaid():
        law = model(x)
        mean, variance = law.mean, law.variance
        if noise:
            variance = variance + model.likelihood.noise
    return mean, variance


def starting_points(kernel: ScaleKernel, likelihood: GaussianLikelihood, starts: int, rng) -> Iterator[Callable]:
    """Lengthscales of half and of a tenth of the unit cube (variance 1, noise 1 %), then random ones."""

    def start(lengthscale: Tensor | float, noise: float) -> Callable[[], None]:
        def put() -> None:
            base = kernel.base_kernel
            base.lengthscale = torch.as_tensor(lengthscale, dtype=base.lengthscale.dtype).expand_as(base.lengthscale)
            kernel.outputscale = torch.ones_like(kernel.outputscale)
            likelihood.noise = torch.full_like(likelihood.noise, max(noise, 2 * likelihood.noise_floor))

        return put

    yield from [start(lengthscale, 1e-2) for lengthscale in LENGTHSCALES[:starts]]
    for _ in range(starts - len(LENGTHSCALES)):
        shape = kernel.base_kernel.lengthscale.shape
        yield start(torch.from_numpy(np.exp(rng.uniform(np.log(0.1), np.log(3.0), shape))), 10 ** rng.uniform(-4, -1))


class SharedGP:
    """fit, then predict given the data of one device."""

    def __init__(
        self,
        kernel: str = "rbf",
        ard: bool = False,
        noise_floor: float = NOISE_FLOOR,
        starts: int = 2,
        evaluations: int = 200,
    ):
        self.kernel_name, self.ard, self.noise_floor = kernel, ard, noise_floor
        self.starts, self.evaluations = starts, evaluations

    def fit(self, data: Data, rng: np.random.Generator) -> SharedGP:
        (x, _), *_ = data
        self.kernel = scaled_kernel(self.kernel_name, x.shape[-1], self.ard).to(x)
        self.likelihood = gaussian_likelihood(self.noise_floor).to(x)
        self.models = [ExactRegression(x, y, self.likelihood, self.kernel) for x, y in data]
        total = sum(len(y) for _, y in data)
        mlls = [gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, model) for model in self.models]
        for model in self.models:
            model.train()

        def objective() -> Tensor:  # a sample; gpytorch's is the likelihood over n_k
            found = (mll(mll.model(x), y) * len(y) for mll, (x, y) in zip(mlls, data, strict=True))
            return sum(found) / total

        parameters = [*self.kernel.parameters(), *self.likelihood.parameters()]
        starts = starting_points(self.kernel, self.likelihood, self.starts, rng)
        self.effort: Effort = maximise(objective, parameters, starts, self.evaluations)
        return self

    def predict(self, x: Tensor, device: int = 0, noise: bool = True) -> Law:
        return predict_exact(self.models[device], x, noise)

    def hyper(self) -> dict[str, list[float]]:
        """The fitted hyper-parameters."""
        return {
            "lengthscale": self.kernel.base_kernel.lengthscale.detach().reshape(-1).tolist(),
            "variance": [self.kernel.outputscale.item()],
            "noise": [self.likelihood.noise.item()],
        }
